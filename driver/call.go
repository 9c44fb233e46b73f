package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"time"
)

// call is one statement on its way through the driver: its context, its limit, and how much of that is spent. A
// query's call goes on in its rows; the time between two of their driver calls does not count.
type call struct {
	p      *Physical
	caller context.Context
	ctx    context.Context    // what the driver gets
	cancel context.CancelFunc // releases ctx; nil where there is nothing to release
	limit  Limit
	began  time.Duration // on the clock
	at     time.Duration // when the driver call that runs began
	spent  time.Duration // inside driver calls before that
	done   bool
}

// start begins the statement query under ctx.
func (p *Physical) start(ctx context.Context, query string) (call, error) {
	if p.doom != nil {
		return call{done: true}, p.doom
	}
	traits := p.traits(query)
	k := call{p: p, caller: ctx, limit: p.lender.Limit(ctx, traits), began: Now()}
	k.at = k.began
	var ok bool
	if k.ctx, k.cancel, ok = p.current.take(ctx); !ok {
		k.ctx, k.cancel = p.derive(ctx)
	}
	if k.limit.Statement > 0 {
		p.guard.enter(k.at+k.limit.Statement+k.limit.Grace, p.ender(k.cancel))
	}
	return k, nil
}

// resume begins a further driver call of the same statement. It has at least the grace, however much was spent: the
// server may have sent long ago what this call fetches.
func (k *call) resume() error {
	if k.p.doom != nil {
		return k.p.doom
	}
	if k.limit.Statement > 0 {
		k.at = Now()
		k.p.guard.enter(k.at+max(k.limit.Statement-k.spent, 0)+k.grace(), k.p.ender(k.cancel))
	}
	return nil
}

// minGrace is what a further driver call of a statement has at least. Where the guard is exact (Grace is 0), a fetch
// of rows that are there already must still be possible.
const minGrace = 10 * time.Millisecond

func (k *call) grace() time.Duration {
	if k.limit.Grace == 0 && k.spent >= k.limit.Statement {
		return minGrace
	}
	return k.limit.Grace
}

// pause ends a driver call and turns its error into the caller's. The statement goes on.
func (k *call) pause(err error) error {
	guarded := k.limit.Statement > 0 && k.p.guard.exit()
	if k.limit.Statement > 0 {
		k.spent += Now() - k.at
	}
	if err == nil && !guarded {
		return nil
	}
	return k.fail(err, guarded)
}

func (k *call) fail(err error, guarded bool) error {
	if !guarded && (err == sqldriver.ErrSkip || err == sqldriver.ErrBadConn) {
		return err
	}
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
