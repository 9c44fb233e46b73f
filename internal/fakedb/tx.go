package fakedb

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
)

// tx is an open transaction. It keeps the context of its BeginTx, as pgx does: Commit fails once that has ended.
type tx struct {
	c    *conn
	ctx  context.Context
	opts sqldriver.TxOptions
}

func (c *conn) Begin() (sqldriver.Tx, error) {
	return c.BeginTx(context.Background(), sqldriver.TxOptions{})
}

func (c *conn) BeginTx(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	t := &tx{c: c, ctx: ctx, opts: opts}
	if err := c.do(ctx, Call{Kind: Begin, Tx: opts}, t.open); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *tx) open() error {
	t.c.s.mu.Lock()
	defer t.c.s.mu.Unlock()
	if t.c.tx != nil {
		t.c.s.violateLocked("conn %d: begin with a transaction open", t.c.id)
		return errTxOpen
	}
	t.c.tx = t
	return nil
}

func (t *tx) Commit() error { return t.finish(t.ctx, Commit) }

// Rollback works after the context has ended: that is when database/sql calls it.
func (t *tx) Rollback() error { return t.finish(context.WithoutCancel(t.ctx), Rollback) }

// finish ends the transaction, as servers do even if they refuse to commit. Only a call that never got there, because
// its context had ended, leaves it open.
func (t *tx) finish(ctx context.Context, kind Kind) error {
	if ctx.Err() == nil {
		defer t.end()
	}
	return t.c.do(ctx, Call{Kind: kind, Tx: t.opts}, t.check)
}

func (t *tx) check() error {
	t.c.s.mu.Lock()
	defer t.c.s.mu.Unlock()
	if t.c.tx != t {
		t.c.s.violateLocked("conn %d: end of a transaction that is not open", t.c.id)
		return errTxEnded
	}
	return nil
}

func (t *tx) end() {
	t.c.s.mu.Lock()
	defer t.c.s.mu.Unlock()
	if t.c.tx == t {
		t.c.tx = nil
	}
}

// describeTx is the answer to the command tx.
func (c *conn) describeTx() string {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.tx == nil {
		return "none"
	}
	return fmt.Sprintf("isolation=%d readonly=%t", c.tx.opts.Isolation, c.tx.opts.ReadOnly)
}
