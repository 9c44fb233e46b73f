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
	latest time.Duration // when the caller's own deadline has passed by so much that the driver ignores it, or forever
	began  time.Duration // on the clock
	at     time.Duration // when the driver call that runs began
	lookAt time.Duration // when the guard begins to watch the caller, where the driver leaves that to it; 0: it does not
	spent  time.Duration // inside driver calls before that; kept only where the guard is exact
	done   bool
	runs   bool   // under the guard: its exit is due
	rest   uint64 // the state in which the last driver call left the guard; 0: it is to be told the limit again
}

// start begins the statement query on the bound connection p in k, and returns the context for the driver. With an error
// there is no call, and nothing to be ended.
func (c *Conn) start(ctx context.Context, k *call, p *Physical, query string) (context.Context, error) {
	if p.doom != nil {
		return nil, p.doom
	}
	traits := p.traits(query)
	limit, began := p.lender.Limit(ctx, traits), Now()
	*k = call{c: c, p: p, caller: ctx, limit: limit, latest: forever, began: began, at: began}
	derived, cancel := p.contextOf(ctx)
	k.cancel = cancel
	if ctx.Done() != nil {
		k.latest = latest(ctx, began)
		if p.watches {
			derived = unwatched{ctx}
			k.watchFrom(began)
		}
	}
	if !k.enter(k.deadline(k.limit.Statement), k.limit.Grace) {
		k.release()
		return nil, c.lost(p)
	}
	return derived, nil
}

// watched is the context that the guard watches; nil: none.
func (k *call) watched() context.Context {
	if k.lookAt == 0 {
		return nil
	}
	return k.caller
}

// watchFrom has the guard watch the caller, in a driver call that begins at began.
func (k *call) watchFrom(began time.Duration) {
	k.lookAt = min(began+watchAfter, k.latest-callerGrace)
}

// deadline is when the guard ends a driver call that begins now and has so much of its limit left.
func (k *call) deadline(left time.Duration) time.Duration {
	if k.limit.Statement == 0 {
		return k.latest
	}
	return min(k.at+left+k.limit.Grace, k.latest)
}

// callerGrace is how long a driver has to end a call whose caller's deadline has passed. If it does not, it ignores the
// context, and the guard ends the call.
const callerGrace = time.Second

// latest is when a call that begins at began has ignored the deadline of ctx for that long.
func latest(ctx context.Context, began time.Duration) time.Duration {
	d, ok := ctx.Deadline()
	if !ok {
		return forever
	}
	return max(min(d.Sub(epoch), forever-callerGrace), began) + callerGrace
}

// resume begins a further driver call of the same statement. Only the time inside driver calls is the statement's; a
// consumer that is slow to ask for rows is not a slow statement, and the server may have sent long ago what this call
// fetches. So it has at least the grace, however much was spent.
func (k *call) resume() error {
	if k.gone() {
		return k.c.whyGone()
	}
	if k.limit.Grace > 0 && k.lookAt == 0 && k.p.guard.again(k.rest, k.limit.Grace) {
		k.runs = true
		return nil
	}
	if k.p.doom != nil {
		return k.p.doom
	}
	switch grace := k.limit.Grace; {
	case k.limit.Statement > 0 && grace > 0:
		// The server counts for itself. The guard is for one that hangs, and need not be exact.
		k.enterLazily(min(k.began+k.limit.Statement+grace, k.latest), grace)
	case k.limit.Statement > 0:
		k.at = Now()
		k.enter(k.deadline(max(k.limit.Statement-k.spent, minGrace)), 0)
	default:
		k.enter(k.latest, 0)
	}
	return k.unlessRevoked()
}

// enter and enterLazily begin a driver call under the guard, which may not let them.

func (k *call) enter(deadline, slack time.Duration) bool {
	return k.entered(k.p.guard.enter(deadline, slack, k.p.ender(k.cancel), k.watched(), k.lookAt))
}

func (k *call) enterLazily(deadline, slack time.Duration) bool {
	return k.entered(k.p.guard.enterLazily(deadline, slack, k.p.ender(k.cancel), k.watched(), k.lookAt))
}

func (k *call) entered(runs bool) bool {
	k.runs = runs
	if k.lookAt != 0 {
		k.lookAt = soon // a further driver call begins without a look at the clock
	}
	return runs
}

func (k *call) unlessRevoked() error {
	if !k.runs {
		return k.c.lost(k.p)
	}
	return nil
}

// resumeLast is resume for the call that ends a statement, which need not be ended to the millisecond: it does not read
// the clock, and has what is left from the guard's first look at it.
func (k *call) resumeLast() error {
	if k.gone() || k.limit.Statement == 0 || k.limit.Grace > 0 || k.p.doom != nil {
		return k.resume()
	}
	k.enterLazily(past, max(k.limit.Statement-k.spent, minGrace))
	return k.unlessRevoked()
}

// resumeLate is resume for a call that goes through even where the guard has fired. It is false if the connection is not
// the borrower's any more.
func (k *call) resumeLate() bool {
	if k.gone() {
		return false
	}
	k.limit = Limit{}
	if k.runs = k.p.enterLate(); !k.runs {
		k.c.lost(k.p)
	}
	return k.runs
}

// gone reports whether the connection was given back under the statement: something panicked, or the pool has taken it
// back. Then it is being closed by another goroutine, and nothing of it may be touched.
func (k *call) gone() bool { return k.c.phys != k.p }

// minGrace is what a further driver call has at least where the guard alone keeps the limit: rows that are there
// already can still be fetched.
const minGrace = 10 * time.Millisecond

// pause ends a driver call and turns its error into the caller's. The statement goes on.
func (k *call) pause(err error) error {
	guarded := k.exit()
	if k.limit.Statement > 0 && k.limit.Grace == 0 {
		k.spent += Now() - k.at
	}
	if err == nil && !guarded {
		return nil
	}
	return k.fail(err, guarded)
}

// exit takes the driver call from under the guard, and reports whether that had fired.
func (k *call) exit() bool {
	if !k.runs {
		return false
	}
	k.runs = false
	guarded := k.p.guard.exit()
	k.rest = k.p.guard.rest
	return guarded
}

func (k *call) fail(err error, guarded bool) error {
	if guarded {
		defer k.p.guard.leave()
		if k.p.revoked.Load() != nil {
			return k.revoked(err)
		}
	} else {
		k.c.noteBad(err)
		if err == sqldriver.ErrSkip || err == sqldriver.ErrBadConn {
			return err
		}
	}
	k.p.unfit = k.p.unfit || guarded
	f := Failure{Err: err, Limit: k.limit, Elapsed: Now() - k.began, Guarded: guarded}
	failed, ended := k.p.lender.Failed(k.caller, f)
	k.p.unended = k.p.unended || !ended
	if guarded {
		k.p.doom = failed
	}
	if err == nil {
		return nil // it ended well in the very moment in which the guard fired
	}
	return failed
}

// revoked lets go of a connection that was taken away during a call. What the call did counts if it succeeded.
func (k *call) revoked(err error) error {
	lost := k.c.lost(k.p)
	if err == nil {
		return nil
	}
	return lost
}

// end is pause for the last driver call of the statement.
func (k *call) end(err error) error {
	k.done = true
	if guarded := k.exit(); err != nil || guarded {
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
