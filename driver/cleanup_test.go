package driver

import (
	sqldriver "database/sql/driver"
	"testing"
)

// A connection of pgx's shape, as far as the wait for its cleanup goes.
type (
	shapedConn struct {
		driverConn
		inner *shapedInner
	}
	driverConn   = interface{ sqldriver.Conn }
	shapedInner  struct{ pg *shapedPgConn }
	shapedPgConn struct{ done chan struct{} }
)

func (c *shapedConn) Conn() *shapedInner                 { return c.inner }
func (c *shapedInner) PgConn() *shapedPgConn             { return c.pg }
func (c *shapedPgConn) CleanupDone() (d chan (struct{})) { return c.done }

func TestCleanupOfPgxIsFoundAndOtherConnectionsHaveNone(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	if got := cleanupDone(&shapedConn{inner: &shapedInner{&shapedPgConn{done}}}); got != (<-chan struct{})(done) {
		t.Errorf("found %v", got)
	}
	for _, conn := range []sqldriver.Conn{&shapedConn{}, &shapedConn{inner: &shapedInner{}}, &Conn{}} {
		if cleanupDone(conn) != nil {
			t.Errorf("%T has one", conn)
		}
	}
}
