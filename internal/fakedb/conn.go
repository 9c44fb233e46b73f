package fakedb

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"maps"
	"slices"
)

// conn is a connection, both its ends: the driver's, and the server's session. It has every optional interface; what
// database/sql gets to see is one of the connShapes. Driver calls keep to one order: enter, perform, leave.
type conn struct {
	s      *Server
	id     int
	dsn    string
	killed chan struct{} // closed by Kill
	shut   chan struct{} // closed by Close

	// Guarded by s.mu.
	open        bool // on the server
	closed      bool // by its user
	broken      bool // the driver knows that it is of no more use
	settings    map[string]string
	calls       []Kind // inside right now; more than one is a violation
	running     int
	orphaned    bool // the running statement goes on without its call
	tx          *tx
	openRows    int
	stmtEpoch   int // moves on when the session forgets its prepared statements
	prepared    int
	stmtsClosed int
}

func (s *Server) open(dsn string) (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.maxConns > 0 && s.stats.Open >= s.maxConns {
		return nil, errf("53300", "sorry, too many clients already")
	}
	c := &conn{s: s, id: len(s.conns) + 1, dsn: dsn, killed: make(chan struct{}), shut: make(chan struct{}), open: true}
	c.settings = maps.Clone(s.config.settings)
	s.conns = append(s.conns, c)
	s.stats.Dialed++
	s.stats.Open++
	s.stats.PeakOpen = max(s.stats.PeakOpen, s.stats.Open)
	return c, nil
}

// ID tells tests which connection they hold; see [ConnID].
func (c *conn) ID() int { return c.id }

// ConnID returns the ID of a driver connection of this package, as (*sql.Conn).Raw hands it out; 0 for any other.
func ConnID(driverConn any) int {
	if c, ok := driverConn.(interface{ ID() int }); ok {
		return c.ID()
	}
	return 0
}

// enter begins a driver call and returns the function that ends it.
func (c *conn) enter(kind Kind) (leave func()) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.closed {
		c.s.violateLocked("conn %d: %s after Close", c.id, kind)
	}
	if len(c.calls) > 0 {
		c.s.violateLocked("conn %d: %s during %s", c.id, kind, c.calls[0])
	}
	c.calls = append(c.calls, kind)
	return func() { c.leave(kind) }
}

func (c *conn) leave(kind Kind) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	i := slices.Index(c.calls, kind)
	c.calls = slices.Delete(c.calls, i, i+1)
}

// do is a driver call that needs a good connection and an unfinished context.
func (c *conn) do(ctx context.Context, call Call, body func() error) error {
	defer c.enter(call.Kind)()
	call.Conn = c.id
	refused := c.refuse(ctx)
	if refused == nil && (call.Kind == Exec || call.Kind == Query) {
		defer c.run()()
	}
	return c.settle(c.s.perform(ctx, call, body, refused))
}

// refuse says why a call cannot even begin, nil if it can. This is where the driver learns of a kill.
func (c *conn) refuse(ctx context.Context) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.closed {
		return errConnClosed
	}
	if c.broken = c.broken || c.isKilled(); c.broken {
		return sqldriver.ErrBadConn
	}
	return ctx.Err()
}

// settle breaks the connection if the error says that it is broken.
func (c *conn) settle(err error) error {
	if errors.Is(err, sqldriver.ErrBadConn) || errors.Is(err, errTerminated) {
		c.breakDown()
	}
	return err
}

func (c *conn) breakDown() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.broken = true
}

func (c *conn) isKilled() bool {
	select {
	case <-c.killed:
		return true
	default:
		return false
	}
}

// run counts a statement as running and returns the function that ends it, unless it was orphaned meanwhile.
func (c *conn) run() (finish func()) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.running++
	c.s.stats.Running++
	c.s.stats.PeakRunning = max(c.s.stats.PeakRunning, c.s.stats.Running)
	return func() {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if c.orphaned {
			c.orphaned = false
			return
		}
		c.finishLocked()
	}
}

func (c *conn) finishLocked() {
	c.running--
	c.s.stats.Running--
	c.dropLocked()
}

// dropLocked takes the connection off the server if neither its user nor a statement keeps it there.
func (c *conn) dropLocked() {
	if c.open && (c.isKilled() || c.closed && c.running == 0) {
		c.open = false
		c.s.stats.Open--
	}
}

func (c *conn) killLocked() {
	if !c.isKilled() {
		close(c.killed)
	}
	c.dropLocked()
}

func (c *conn) violate(what string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.violateLocked("conn %d: %s", c.id, what)
}

// strayLocked reports what a connection that is handed back or closed must not hold.
func (c *conn) strayLocked(kind Kind) {
	if c.broken || c.closed || c.isKilled() {
		return
	}
	if c.openRows > 0 {
		c.s.violateLocked("conn %d: %s with rows open", c.id, kind)
	}
	if c.tx != nil {
		c.s.violateLocked("conn %d: %s with a transaction open", c.id, kind)
	}
}

func (c *conn) statsLocked() ConnStats {
	return ConnStats{
		ID: c.id, DSN: c.dsn, Open: c.open, Closed: c.closed, Killed: c.isKilled(), InTx: c.tx != nil,
		OpenRows: c.openRows, Prepared: c.prepared, StmtsClosed: c.stmtsClosed,
	}
}
