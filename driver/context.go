package driver

import "context"

// lentContext is what a driver gets in place of a context that cannot be cancelled: the end of the physical
// connection's own context, and the values of the caller's.
//
// Its Done channel is that of a context of the standard library, and Value finds that context, so that
// context.AfterFunc and WithCancel need no goroutine for it. With a Done channel of our own they would, in every call
// of pgx and lib/pq.
type lentContext struct {
	context.Context // of the physical connection; it has no values
	caller          context.Context
}

func (c *lentContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.caller.Value(key)
}

// derive returns the context for a driver call under ctx that guard can end. cancel releases it, and is nil where
// there is nothing to release.
func (p *Physical) derive(ctx context.Context) (derived context.Context, cancel context.CancelFunc) {
	if p.cuts {
		return ctx, nil // the guard has another way
	}
	if ctx.Done() == nil {
		if p.lent == nil || !same(ctx, p.lent.caller) {
			p.lent = &lentContext{p.life, ctx}
		}
		return p.lent, nil
	}
	return context.WithCancel(ctx)
}

// contextOf is derive for a call of the borrower's.
func (p *Physical) contextOf(ctx context.Context) (derived context.Context, cancel context.CancelFunc) {
	if p.cuts {
		return ctx, nil
	}
	if derived, cancel, ok := p.current.take(ctx); ok {
		return derived, cancel
	}
	return p.derive(ctx)
}

// checkout is the context that was derived to reset the session. It serves the first call, too, if that comes with
// the same context, as it does whenever the caller calls a *sql.DB.
type checkout struct {
	caller  context.Context // nil: none
	derived context.Context
	cancel  context.CancelFunc
}

func (c *checkout) take(ctx context.Context) (derived context.Context, cancel context.CancelFunc, ok bool) {
	if c.caller == nil || !same(ctx, c.caller) {
		return nil, nil, false
	}
	derived, cancel = c.derived, c.cancel
	*c = checkout{}
	return derived, cancel, true
}

func (c *checkout) drop() {
	if c.cancel != nil {
		c.cancel()
	}
	*c = checkout{}
}

// same reports whether two contexts are one. Contexts that cannot be compared are not.
func same(a, b context.Context) (eq bool) {
	defer func() {
		if recover() != nil {
			eq = false
		}
	}()
	return a == b
}
