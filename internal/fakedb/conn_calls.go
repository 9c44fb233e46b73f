package fakedb

import (
	"context"
	sqldriver "database/sql/driver"
)

var _ interface {
	sqldriver.Conn
	sqldriver.Pinger
	sqldriver.ExecerContext
	sqldriver.QueryerContext
	sqldriver.ConnPrepareContext
	sqldriver.ConnBeginTx
	sqldriver.SessionResetter
	sqldriver.Validator
	sqldriver.NamedValueChecker
	execer
	queryer
} = (*conn)(nil)

func (c *conn) Ping(ctx context.Context) error { return c.do(ctx, Call{Kind: Ping}, nil) }

func (c *conn) ExecContext(ctx context.Context, text string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	return c.exec(ctx, Call{Kind: Exec, Conn: c.id, Text: text, Args: args}, nil)
}

func (c *conn) QueryContext(ctx context.Context, text string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	return c.query(ctx, Call{Kind: Query, Conn: c.id, Text: text, Args: args}, nil)
}

// Exec is the Execer of old.
func (c *conn) Exec(text string, args []sqldriver.Value) (sqldriver.Result, error) {
	return c.ExecContext(context.Background(), text, named(args))
}

// Query is the Queryer of old.
func (c *conn) Query(text string, args []sqldriver.Value) (sqldriver.Rows, error) {
	return c.QueryContext(context.Background(), text, named(args))
}

func (c *conn) Prepare(text string) (sqldriver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c *conn) PrepareContext(ctx context.Context, text string) (st sqldriver.Stmt, err error) {
	err = c.do(ctx, Call{Kind: Prepare, Text: text}, func() (err error) {
		st, err = c.prepare(text)
		return err
	})
	return st, err
}

func (c *conn) CheckNamedValue(nv *sqldriver.NamedValue) error {
	return c.checked(nv, c.s.check)
}

func (c *conn) checked(nv *sqldriver.NamedValue, check func(*sqldriver.NamedValue) error) error {
	defer c.enter(Check)()
	call := Call{Kind: Check, Conn: c.id, Args: []sqldriver.NamedValue{*nv}}
	return c.s.perform(context.Background(), call, func() error { return check(nv) }, nil)
}

// ResetSession is where the next borrower comes in: nothing of the last one's may be left.
func (c *conn) ResetSession(ctx context.Context) error {
	defer c.enter(Reset)()
	return c.settle(c.s.perform(ctx, Call{Kind: Reset, Conn: c.id}, nil, c.handOver(Reset, SessionResetter)))
}

// IsValid is where the last borrower goes.
func (c *conn) IsValid() bool {
	defer c.enter(Valid)()
	err := c.handOver(Valid, Validator)
	return c.settle(c.s.perform(context.Background(), Call{Kind: Valid, Conn: c.id}, nil, err)) == nil
}

func (c *conn) handOver(kind Kind, seenBy Interfaces) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.strayLocked(kind)
	if c.closed {
		return errConnClosed
	}
	if c.broken || c.isKilled() && c.s.killSeenBy.Has(seenBy) {
		return sqldriver.ErrBadConn
	}
	return nil
}

// Close takes as long as its hook does, and closes whatever that returns.
func (c *conn) Close() error {
	defer c.enter(CloseConn)()
	err := c.s.perform(context.Background(), Call{Kind: CloseConn, Conn: c.id}, nil, nil)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.strayLocked(CloseConn)
	if c.closed {
		return errConnClosed
	}
	c.closed = true
	close(c.shut)
	c.s.stats.Closed++
	c.dropLocked()
	return err
}

// named turns the arguments of the old interfaces into today's.
func named(args []sqldriver.Value) []sqldriver.NamedValue {
	list := make([]sqldriver.NamedValue, len(args))
	for i, v := range args {
		list[i] = sqldriver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return list
}
