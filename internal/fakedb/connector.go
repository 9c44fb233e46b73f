package fakedb

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"io"
	"sync/atomic"
)

var (
	_ sqldriver.Driver        = (*Server)(nil)
	_ sqldriver.DriverContext = (*Server)(nil)
	_ sqldriver.Connector     = (*connector)(nil)
	_ io.Closer               = (*connector)(nil)
)

var registered atomic.Int64

// Register registers the driver with database/sql under a name of its own that starts with prefix, and returns it.
// database/sql forgets no driver, and refuses a name that it has seen.
func (s *Server) Register(prefix string) string {
	name := fmt.Sprintf("%s-%d", prefix, registered.Add(1))
	sql.Register(name, s.Driver())
	return name
}

// Driver returns the driver, the same each time: the server itself, or less without DriverContext.
func (s *Server) Driver() sqldriver.Driver {
	if s.ifaces.Has(DriverContext) {
		return s
	}
	return struct{ sqldriver.Driver }{s}
}

// Connector returns a new connector with an empty DSN.
func (s *Server) Connector() sqldriver.Connector { return s.connector("") }

// OpenConnector returns a new connector. Only the hook of OpenDSN looks at the DSN.
func (s *Server) OpenConnector(dsn string) (c sqldriver.Connector, err error) {
	err = s.perform(context.Background(), Call{Kind: OpenDSN, Text: dsn}, func() error {
		c = s.connector(dsn)
		return nil
	}, nil)
	return c, err
}

// Open dials.
func (s *Server) Open(dsn string) (sqldriver.Conn, error) { return s.dial(context.Background(), dsn) }

func (s *Server) connector(dsn string) sqldriver.Connector {
	c := &connector{s: s, dsn: dsn}
	if s.ifaces.Has(ConnectorCloser) {
		return c
	}
	return struct{ sqldriver.Connector }{c}
}

func (s *Server) dial(ctx context.Context, dsn string) (sqldriver.Conn, error) {
	s.mu.Lock()
	s.stats.Dials++
	s.mu.Unlock()
	var c *conn
	err := s.perform(ctx, Call{Kind: Dial, Text: dsn}, func() (err error) {
		if err = ctx.Err(); err == nil {
			c, err = s.open(dsn)
		}
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	return connShapes[s.ifaces&AllConn](c), nil
}

type connector struct {
	s      *Server
	dsn    string
	closed bool // guarded by s.mu
}

func (c *connector) Driver() sqldriver.Driver { return c.s.Driver() }

// Connect fails once the connector is closed. That is no violation: database/sql's opener may come late.
func (c *connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	c.s.mu.Lock()
	closed := c.closed
	c.s.mu.Unlock()
	if closed {
		return nil, errConnectorClosed
	}
	return c.s.dial(ctx, c.dsn)
}

func (c *connector) Close() error {
	return c.s.perform(context.Background(), Call{Kind: CloseConnector, Text: c.dsn}, func() error {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if c.closed {
			c.s.violateLocked("connector: second Close")
		}
		c.closed = true
		c.s.stats.ConnectorsClosed++
		return nil
	}, nil)
}
