package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"net"
	"testing"
	"time"
)

// A connection of pgx's shape, as far as the wait for its cleanup goes.
type (
	shapedConn struct {
		driverConn
		inner *shapedInner
	}
	driverConn   = interface{ sqldriver.Conn }
	shapedInner  struct{ pg *shapedPgConn }
	shapedPgConn struct {
		closed bool
		done   chan struct{}
		socket net.Conn
	}
)

func (c *shapedConn) Conn() *shapedInner                 { return c.inner }
func (c *shapedInner) PgConn() *shapedPgConn             { return c.pg }
func (c *shapedPgConn) CleanupDone() (d chan (struct{})) { return c.done }
func (c *shapedPgConn) IsClosed() bool                   { return c.closed }
func (c *shapedPgConn) Conn() net.Conn                   { return c.socket }

func TestCleanupOfPgxIsFoundAndOtherConnectionsHaveNone(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	if got := cleanupDone(&shapedConn{inner: &shapedInner{&shapedPgConn{closed: true, done: done}}}); got != (<-chan struct{})(done) {
		t.Errorf("found %v", got)
	}
	for _, conn := range []sqldriver.Conn{
		&shapedConn{}, &shapedConn{inner: &shapedInner{&shapedPgConn{done: done}}}, // not closed
		&shapedConn{inner: &shapedInner{}}, &Conn{}} {
		if cleanupDone(conn) != nil {
			t.Errorf("%T has one", conn)
		}
	}
}

func TestGuardOfPgxCutsItsSocketInPlaceOfAContext(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	conn := &shapedConn{inner: &shapedInner{&shapedPgConn{socket: ours}}}
	p := NewPhysical(conn, nil, NewTexts())
	for _, caller := range []context.Context{context.Background(), t.Context()} {
		if ctx, cancel := p.derive(caller); ctx != caller || cancel != nil {
			t.Error("the driver is given another context than the caller's")
		}
	}
	p.guard.enter(Now()+time.Millisecond, 0, p.ender(nil), nil, 0)
	if _, err := ours.Read(make([]byte, 1)); err == nil {
		t.Error("the read went on")
	}
	if !p.guard.exit() {
		t.Error("the guard has not fired")
	}
}
