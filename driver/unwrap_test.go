package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"net"
	"testing"
	"time"
)

// Wrappers of the kinds that are about.
type (
	byValue  struct{ parent sqldriver.Conn }
	embedded struct {
		name string
		sqldriver.Conn
	}
	split      struct{ writer, reader sqldriver.Conn }
	resettable struct{ bare } // a driver's own
	bare       string         // implements driver.Conn, and is no struct
)

func (byValue) Prepare(string) (sqldriver.Stmt, error) { return nil, nil }
func (byValue) Begin() (sqldriver.Tx, error)           { return nil, nil }
func (byValue) Close() error                           { return nil }

func (*resettable) ResetSession(context.Context) error { return nil }

func (*split) Prepare(string) (sqldriver.Stmt, error) { return nil, nil }
func (*split) Begin() (sqldriver.Tx, error)           { return nil, nil }
func (*split) Close() error                           { return nil }

func (bare) Prepare(string) (sqldriver.Stmt, error) { return nil, nil }
func (bare) Begin() (sqldriver.Tx, error)           { return nil, nil }
func (bare) Close() error                           { return nil }

func TestUnwrapFindsTheDriversConnection(t *testing.T) {
	t.Parallel()
	conn := &resettable{}
	for what, wrapped := range map[string]sqldriver.Conn{
		"bare":                conn,
		"Raw method":          tracedConn{inner: conn},
		"unexported field":    byValue{conn},
		"pointer, embedded":   &embedded{"", conn},
		"part of the wrapper": &struct{ *embedded }{&embedded{"", conn}},
		"several times": struct {
			sqldriver.Conn
			sqldriver.SessionResetter
			sqldriver.ConnBeginTx
		}{&embedded{"", conn}, conn, nil},
		"only by an optional interface": struct {
			bare
			sqldriver.SessionResetter
		}{"", conn},
		"one around the next": &embedded{"", byValue{tracedConn{inner: conn}}},
	} {
		if got, ok := unwrap(wrapped); got != conn || ok == (what == "bare") {
			t.Errorf("%s: %T, %t", what, got, ok)
		}
	}
	itself := &embedded{}
	itself.Conn = itself
	for _, own := range []sqldriver.Conn{itself, &embedded{}, byValue{}, bare(""),
		&split{conn, nil}, &split{nil, conn}, &split{conn, &shapedConn{}}, byValue{(*shapedConn)(nil)}} {
		if got, ok := unwrap(own); got != own || ok {
			t.Errorf("%T: %T, %t", own, got, ok)
		}
	}
}

// As go-sql-driver/mysql closes a connection whose call was cut short, within a wrapper that does not say so.
func TestConnectionThatIsClosedIsNotLentAgainFromAWrapperThatDoesNotTell(t *testing.T) {
	t.Parallel()
	for _, valid := range []bool{false, true} {
		p := NewPhysical(byValue{&validated{valid: valid}}, nil, NewTexts())
		p.unended = true
		if bad := p.release(); bad == valid {
			t.Errorf("valid %t, bad %t", valid, bad)
		}
	}
}

type validated struct {
	driverConn
	valid bool
}

func (v *validated) IsValid() bool { return v.valid }

// Which may wait until its caller's context ends, before it calls the driver or between two attempts.
func TestWrapperOfPgxIsGivenAContextThatEndsWithTheCall(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	p := NewPhysical(byValue{&shapedConn{inner: &shapedInner{&shapedPgConn{socket: ours}}}}, nil, NewTexts())
	ctx, cancel := p.derive(context.Background())
	p.guard.enter(Now()+time.Millisecond, 0, p.ender(cancel), nil, 0)
	<-ctx.Done()
	if !p.guard.exit() || p.watches {
		t.Error("the guard has not ended it")
	}
	if p.socket != ours {
		t.Error("the socket is not known, should the call go on")
	}
}
