package fakedb

import (
	sqldriver "database/sql/driver"
	"maps"
	"slices"
)

// A shape is a type with exactly some of the optional interfaces: database/sql asks by type assertion, so each
// combination is a type of its own. There is one for each interface switched off in turn, and the few combinations
// that real drivers have. The parts that they are made of:
type (
	connCore interface {
		sqldriver.Conn
		ID() int
	}
	execer interface {
		Exec(text string, args []sqldriver.Value) (sqldriver.Result, error)
	}
	queryer interface {
		Query(text string, args []sqldriver.Value) (sqldriver.Rows, error)
	}
	direct interface {
		sqldriver.ExecerContext
		sqldriver.QueryerContext
	}
	starts interface {
		sqldriver.ConnPrepareContext
		sqldriver.ConnBeginTx
	}
	session interface {
		sqldriver.SessionResetter
		sqldriver.Validator
	}
	others interface {
		sqldriver.Pinger
		sqldriver.NamedValueChecker
	}
)

var connShapes = map[Interfaces]func(*conn) sqldriver.Conn{
	usualConn: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			direct
			starts
			session
			others
		}{c, c, c, c, c}
	},
	usualConn &^ Pinger: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			direct
			starts
			session
			sqldriver.NamedValueChecker
		}{c, c, c, c, c}
	},
	usualConn &^ NamedValueChecker: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			direct
			starts
			session
			sqldriver.Pinger
		}{c, c, c, c, c}
	},
	usualConn &^ ExecerContext: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			sqldriver.QueryerContext
			starts
			session
			others
		}{c, c, c, c, c}
	},
	usualConn &^ QueryerContext: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			sqldriver.ExecerContext
			starts
			session
			others
		}{c, c, c, c, c}
	},
	usualConn &^ ConnPrepareContext: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			direct
			sqldriver.ConnBeginTx
			session
			others
		}{c, c, c, c, c}
	},
	usualConn &^ ConnBeginTx: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			direct
			sqldriver.ConnPrepareContext
			session
			others
		}{c, c, c, c, c}
	},
	usualConn &^ SessionResetter: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			direct
			starts
			sqldriver.Validator
			others
		}{c, c, c, c, c}
	},
	usualConn &^ Validator: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			direct
			starts
			sqldriver.SessionResetter
			others
		}{c, c, c, c, c}
	},
	// A driver that keeps no state between borrowers, or has not been touched for long.
	usualConn &^ (SessionResetter | Validator): func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			direct
			starts
			others
		}{c, c, c, c}
	},
	// A driver that always prepares.
	usualConn &^ (ExecerContext | QueryerContext): func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			starts
			session
			others
		}{c, c, c, c}
	},
	// A driver that kept the old interfaces beside the new.
	usualConn | Execer | Queryer: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			execer
			queryer
			direct
			starts
			session
			others
		}{c, c, c, c, c, c, c}
	},
	// Old calls in a driver that is otherwise of today.
	usualConn&^(ExecerContext|QueryerContext) | Execer | Queryer: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			execer
			queryer
			starts
			session
			others
		}{c, c, c, c, c, c}
	},
	// A driver as of Go 1.0 that took the trouble, and one that did not.
	Execer | Queryer: func(c *conn) sqldriver.Conn {
		return struct {
			connCore
			execer
			queryer
		}{c, c, c}
	},
	0: func(c *conn) sqldriver.Conn { return struct{ connCore }{c} },
}

// ConnShapes lists the combinations of a connection's interfaces that New can make, for tests that try each:
// New(Without(AllConn), With(shape)).
func ConnShapes() []Interfaces { return slices.Sorted(maps.Keys(connShapes)) }

// mustHave panics if there is no such shape.
func mustHave[F any](shapes map[Interfaces]F, want Interfaces) {
	if _, ok := shapes[want]; !ok {
		panic("fakedb: there is no shape with exactly these interfaces: " + want.String())
	}
}
