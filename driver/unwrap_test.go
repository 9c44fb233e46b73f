package driver

import (
	sqldriver "database/sql/driver"
	"testing"
)

// Wrappers of the kinds that are about.
type (
	byValue  struct{ parent sqldriver.Conn }
	embedded struct {
		name string
		sqldriver.Conn
	}
	bare string // implements driver.Conn, and is no struct
)

func (byValue) Prepare(string) (sqldriver.Stmt, error) { return nil, nil }
func (byValue) Begin() (sqldriver.Tx, error)           { return nil, nil }
func (byValue) Close() error                           { return nil }

func (bare) Prepare(string) (sqldriver.Stmt, error) { return nil, nil }
func (bare) Begin() (sqldriver.Tx, error)           { return nil, nil }
func (bare) Close() error                           { return nil }

func TestUnwrapFindsTheDriversConnection(t *testing.T) {
	t.Parallel()
	conn := &shapedConn{}
	for what, wrapped := range map[string]sqldriver.Conn{
		"bare":                conn,
		"Raw method":          tracedConn{inner: conn},
		"unexported field":    byValue{conn},
		"pointer, embedded":   &embedded{"", conn},
		"one around the next": &embedded{"", byValue{tracedConn{inner: conn}}},
	} {
		if got := unwrap(wrapped); got != conn {
			t.Errorf("%s: %T", what, got)
		}
	}
	itself := &embedded{}
	itself.Conn = itself
	for _, own := range []sqldriver.Conn{itself, &embedded{}, byValue{}, bare("")} {
		if got := unwrap(own); got != own {
			t.Errorf("%T: %T", own, got)
		}
	}
}
