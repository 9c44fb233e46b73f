package driver

import (
	sqldriver "database/sql/driver"
	"math"
	"testing"
)

// A connection of pgx's shape, as far as its process id and the mode of its queries go.
type (
	pidConn struct {
		driverConn
		inner *pidInner
	}
	pidInner   struct{ config pidConfig }
	pidPgConn  struct{}
	pidConfig  struct{ DefaultQueryExecMode execMode }
	execMode   int32
	tracedConn struct {
		driverConn
		inner sqldriver.Conn
	}
)

func (c *pidConn) Conn() *pidInner       { return c.inner }
func (c *pidInner) PgConn() *pidPgConn   { return &pidPgConn{} }
func (c *pidInner) Config() *pidConfig   { copied := c.config; return &copied }
func (*pidPgConn) PID() uint32           { return math.MaxUint32 }
func (c tracedConn) Raw() sqldriver.Conn { return c.inner }
func (m execMode) String() string {
	if m == 4 {
		return "exec"
	}
	return "some other"
}

func TestProcessIDAndQueryModeOfPgxAreFoundAndOtherConnectionsHaveNone(t *testing.T) {
	t.Parallel()
	pgx := &pidConn{inner: &pidInner{config: pidConfig{1}}}
	for _, conn := range []sqldriver.Conn{pgx, tracedConn{inner: pgx}} {
		if pid := NewSession(conn).BackendPID(); pid != math.MaxUint32 {
			t.Errorf("%T: pid %d", conn, pid)
		}
		args := unprepared(newRaw(conn).inner)
		if len(args) != 1 || args[0].Value != execMode(4) {
			t.Errorf("%T: %v", conn, args)
		}
	}
	if pgx.inner.config.DefaultQueryExecMode != 1 {
		t.Error("the mode of the user's queries has changed")
	}
	for _, conn := range []sqldriver.Conn{&pidConn{}, &shapedConn{}, &shapedConn{inner: &shapedInner{&shapedPgConn{}}}, &Conn{}} {
		if pid := NewSession(conn).BackendPID(); pid != 0 {
			t.Errorf("%T has %d", conn, pid)
		}
		if args := unprepared(conn); args != nil {
			t.Errorf("%T has %v", conn, args)
		}
	}
}
