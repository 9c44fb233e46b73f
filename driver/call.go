package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"time"
)

// call is one statement on its way through the driver: its context, its limit, and how much of that is spent. A
// query's call goes on in its rows, a transaction's until it ends.
type call struct {
	c      *Conn
	p      *Physical
	caller context.Context
	cancel context.CancelFunc // releases the driver's context; nil where there is nothing to release
	limit  Limit
	began  time.Duration // on the clock
	at     time.Duration // when the driver call that runs began
	spent  time.Duration // inside driver calls before that; kept only where the guard is exact
	done   bool
}

// start begins the statement query on the bound connection p, and returns the context for the driver.
func (c *Conn) start(ctx context.Context, p *Physical, query string) (call, context.Context, error) {
	if p.doom != nil {
		return call{done: true}, nil, p.doom
	}
	traits := p.traits(query)
	k := call{c: c, p: p, caller: ctx, limit: p.lender.Limit(ctx, traits), began: Now()}
	k.at = k.began
	derived, cancel, ok := p.current.take(ctx)
	if !ok {
		derived, cancel = p.derive(ctx)
	}
	k.cancel = cancel
	if k.limit.Statement > 0 {
		p.guard.enter(k.at+k.limit.Statement+k.limit.Grace, k.limit.Grace, p.ender(cancel))
	}
	return k, derived, nil
}

// resume begins a further driver call of the same statement. Only the time inside driver calls is the statement's; a
// consumer that is slow to ask for rows is not a slow statement, and the server may have sent long ago what this call
// fetches. So it has at least the grace, however much was spent.
func (k *call) resume() error {
	if k.gone() {
		return sqldriver.ErrBadConn
	}
	if k.p.doom != nil {
		return k.p.doom
	}
	switch {
	case k.limit.Statement == 0:
	case k.limit.Grace > 0:
		// The server counts for itself. The guard is for one that hangs, and need not be exact.
		k.p.guard.enterLazily(k.began+k.limit.Statement, k.limit.Grace, k.p.ender(k.cancel))
	default:
		k.at = Now()
		k.p.guard.enter(k.at+max(k.limit.Statement-k.spent, minGrace), 0, k.p.ender(k.cancel))
	}
	return nil
}

// resumeLast is resume for the call that ends a statement, which need not be ended to the millisecond: it does not read
// the clock.
func (k *call) resumeLast() error {
	if k.limit.Statement == 0 || k.limit.Grace > 0 || k.p.doom != nil {
		return k.resume()
	}
	k.p.guard.enterLazily(0, max(k.limit.Statement-k.spent, minGrace), k.p.ender(k.cancel))
	return nil
}

// gone reports whether the connection was given back under the statement: something panicked. Then it is being closed
// by another goroutine, and nothing of it may be touched.
func (k *call) gone() bool { return k.c.phys != k.p }

// minGrace is what a further driver call has at least where the guard alone keeps the limit: rows that are there
// already can still be fetched.
const minGrace = 10 * time.Millisecond

// pause ends a driver call and turns its error into the caller's. The statement goes on.
func (k *call) pause(err error) error {
	guarded := k.limit.Statement > 0 && k.p.guard.exit()
	if k.limit.Statement > 0 && k.limit.Grace == 0 {
		k.spent += Now() - k.at
	}
	if err == nil && !guarded {
		return nil
	}
	return k.fail(err, guarded)
}

func (k *call) fail(err error, guarded bool) error {
	if !guarded {
		k.c.noteBad(err)
		if err == sqldriver.ErrSkip || err == sqldriver.ErrBadConn {
			return err
		}
	}
	k.p.unfit = k.p.unfit || guarded
	f := Failure{Err: err, Limit: k.limit, Elapsed: Now() - k.began, Guarded: guarded}
	failed := k.p.lender.Failed(k.caller, f)
	if guarded {
		k.p.doom = failed
	}
	if err == nil {
		return nil // it ended well in the very moment in which the guard fired
	}
	return failed
}

// end is pause for the last driver call of the statement.
func (k *call) end(err error) error {
	k.done = true
	if guarded := k.limit.Statement > 0 && k.p.guard.exit(); err != nil || guarded {
		err = k.fail(err, guarded)
	}
	k.release()
	return err
}

func (k *call) release() {
	if k.cancel != nil {
		k.cancel()
		k.cancel = nil
	}
}
