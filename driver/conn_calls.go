package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
)

// Every call has the same shape: start a call, which is deferred to be abandoned should it panic, run it, end it, and
// do it once more on a new connection if this one was dead and database/sql has no attempt left.

// ExecContext implements driver.ExecerContext.
func (c *Conn) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	for {
		res, err := c.exec(ctx, query, args)
		if !c.again(ctx, &err) {
			return res, err
		}
	}
}

func (c *Conn) exec(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	p, err := c.bound()
	if err != nil {
		return nil, err
	}
	if c.skipped = !p.canExec(); c.skipped {
		return nil, sqldriver.ErrSkip
	}
	var k call
	dctx, err := c.start(ctx, &k, p, query)
	if err != nil {
		return nil, err
	}
	defer c.abandon(&k.done)
	res, err := p.exec(dctx, query, args)
	err = k.end(err)
	c.skipped = err == sqldriver.ErrSkip
	return res, err
}

// QueryContext implements driver.QueryerContext.
func (c *Conn) QueryContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	for {
		r, err := c.query(ctx, query, args)
		if !c.again(ctx, &err) {
			return r, err
		}
	}
}

func (c *Conn) query(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	p, err := c.bound()
	if err != nil {
		return nil, err
	}
	if c.skipped = !p.canQuery(); c.skipped {
		return nil, sqldriver.ErrSkip
	}
	w := c.unusedRows()
	dctx, err := c.start(ctx, &w.k, p, query)
	if err != nil {
		return nil, err
	}
	defer c.abandon(&w.k.done)
	r, err := p.query(dctx, query, args)
	if err != nil {
		err = w.fail(err)
		c.skipped = err == sqldriver.ErrSkip
		return nil, err
	}
	return w.begin(r, nil), nil
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *Conn) PrepareContext(ctx context.Context, query string) (sqldriver.Stmt, error) {
	once := c.skipped
	for {
		s, known, err := c.prepare(ctx, query, once)
		if err == nil && known {
			return s, nil // nothing was sent: whether the connection is alive, the statement's first use will tell
		}
		if !c.again(ctx, &err) {
			return s, err
		}
	}
}

// prepare also reports whether the text was known to be prepared there already.
func (c *Conn) prepare(ctx context.Context, query string, once bool) (stmt sqldriver.Stmt, known bool, err error) {
	c.skipped = false
	p, err := c.bound()
	if err != nil {
		return nil, false, err
	}
	var k call
	dctx, err := c.start(ctx, &k, p, "") // to prepare it runs nothing
	if err != nil {
		return nil, false, err
	}
	defer c.abandon(&k.done)
	s, known, err := c.newStmt(dctx, query, once)
	if err = k.end(err); err != nil {
		return nil, false, err
	}
	return s, known, nil
}

// BeginTx implements driver.ConnBeginTx.
func (c *Conn) BeginTx(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	for {
		t, err := c.begin(ctx, opts)
		if !c.again(ctx, &err) {
			return t, err
		}
	}
}

func (c *Conn) begin(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	c.skipped = false
	p, err := c.bound()
	if err != nil {
		return nil, err
	}
	var k call
	dctx, err := c.start(ctx, &k, p, "BEGIN")
	if err != nil {
		return nil, err
	}
	defer c.abandon(&k.done)
	t, err := p.begin(dctx, opts)
	if err == nil {
		err = p.begun(dctx, t)
	}
	if err != nil {
		return nil, k.end(err)
	}
	return newTx(&k, t), nil
}

// Ping implements driver.Pinger.
func (c *Conn) Ping(ctx context.Context) error {
	for {
		err := c.ping(ctx)
		if !c.again(ctx, &err) {
			return err
		}
	}
}

func (c *Conn) ping(ctx context.Context) error {
	c.skipped = false
	p, err := c.bound()
	if err != nil {
		return err
	}
	var k call
	dctx, err := c.start(ctx, &k, p, "")
	if err != nil {
		return err
	}
	defer c.abandon(&k.done)
	return k.end(p.ping(dctx))
}

// again reports whether the call that ended with err is to be made once more, on another connection: it was the
// first since Connect bound an idle connection, which turns out to be dead. ErrBadConn promises that nothing was
// executed. (Nor does ErrSkip touch the connection: the call that counts is the one that follows.)
func (c *Conn) again(ctx context.Context, err *error) bool {
	return c.lastResort && *err != sqldriver.ErrSkip && c.replaced(ctx, err)
}

// replaced is again where it may be true.
func (c *Conn) replaced(ctx context.Context, err *error) bool {
	c.lastResort = false
	if c.phys == nil || !errors.Is(*err, sqldriver.ErrBadConn) {
		return false
	}
	if ctx.Err() != nil { // what pgx answers ErrBadConn, too; and nobody waits for another connection
		*err = ctx.Err()
		return false
	}
	dead := c.phys
	if !dead.lender.Returning() {
		*err = c.lost(dead)
		return false
	}
	c.phys = nil
	dead.release()
	fresh, failed := dead.lender.Replace(ctx)
	if failed != nil {
		c.refusal, *err = failed, failed
		return false
	}
	c.phys, c.last = fresh, fresh.lender
	return true
}

// Prepare and Begin are what database/sql calls on a connection without the methods above.

// Prepare implements driver.Conn.
func (c *Conn) Prepare(query string) (sqldriver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// Begin implements driver.Conn.
func (c *Conn) Begin() (sqldriver.Tx, error) {
	return c.BeginTx(context.Background(), sqldriver.TxOptions{})
}
