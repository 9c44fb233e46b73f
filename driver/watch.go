package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"reflect"
	"time"
)

// A driver that is given a context which can end watches it from the beginning of each call to its end. That costs pgx a
// twentieth of its throughput, and is for nothing in all calls but the few whose context does end. All that pgx then does
// is to set a deadline on its socket, which the guard can do as well. So pgx gets a context that does not say when it ends,
// and the guard watches the caller's: not before a call has taken watchAfter, which most never do. (Where pgx has a tracer, a
// wrapper or another handler it keeps its own watch: see watchesByDeadline.)

// watchAfter is for how long a call goes on at most whose context has ended. (The end of a context that has a deadline is
// known beforehand, and not missed by that.)
const watchAfter = 5 * time.Millisecond

// look sees to it that a tick comes in time to watch the call that runs: at the latest at a time on the clock, or where that is
// soon watchAfter from now. Only then, and only where the timer may be set too late, does it read the clock: where it is not
// set, or may be set for a call that was not to be watched, as that which left the state last was not.
func (g *guard) look(last uint64, at time.Duration) {
	if at != soon {
		g.wakeBy(at)
	} else if last&watchable == 0 || g.armed.Load() == 0 {
		g.armIn(watchAfter)
	}
}

// soon is no time.
const soon = time.Duration(-1)

// watchLocked begins to watch the caller of s, the state of the call that runs. From now on that call ends by exitWatched,
// and no other begins before.
func (g *guard) watchLocked(s uint64) {
	g.unwatch = context.AfterFunc(g.caller, func() { g.callerEnded(s) })
}

// callerEnded ends call s, if it still runs. That is not what it is for a guard to fire: the connection stays its borrower's,
// and what becomes of it is for the driver to say. It is cut under the lock, so that it can be mended when the call ends.
func (g *guard) callerEnded(s uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state.CompareAndSwap(s, s|cut) {
		g.cancel()
		g.stuckAt = Now() + stuckAfter
		g.armLocked(g.stuckAt)
	}
}

// exitWatched is exit for a call that is watched, or whose guard has fired. The timer is set anew by the next call: it may
// be set for this one's deadline, which is too late for a first look at another.
func (g *guard) exitWatched() (guarded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stuckAt = 0
	if g.isLate {
		g.isLate = false
		<-g.late
		return false
	}
	g.unwatchLocked()
	s := g.state.Load()
	g.rest = g.over(s)
	if s == fired || !g.state.CompareAndSwap(s, g.rest) {
		return true
	}
	g.timer.Stop()
	g.armed.Store(0)
	if s&cut != 0 {
		g.mend()
	}
	return false
}

func (g *guard) unwatchLocked() {
	if g.unwatch != nil {
		g.unwatch()
		g.unwatch = nil
	}
}

// unwatched is the context of a call that the guard watches. Once it has ended it says so: drivers look before they begin.
type unwatched struct{ context.Context }

func (c unwatched) Done() <-chan struct{} {
	if c.Err() != nil {
		return c.Context.Done()
	}
	return nil
}

// contextFor is the context for a call with args. An argument of pgx's that rewrites the query may look things up for that, and
// has to know when the caller's context ends.
func contextFor(ctx context.Context, args []sqldriver.NamedValue) context.Context {
	if len(args) > 0 {
		if u, ok := ctx.(unwatched); ok && rewrites(args) {
			return u.Context
		}
	}
	return ctx
}

// rewrites reports whether there is a pgx.QueryRewriter among args. pgx looks for one before the first argument proper, after
// options of its own.
func rewrites(args []sqldriver.NamedValue) bool {
	for _, arg := range args {
		if sqldriver.IsValue(arg.Value) {
			return false
		}
		switch arg.Value.(type) {
		case int, int32, uint32, uint64:
			return false
		}
		if _, ok := reflect.TypeOf(arg.Value).MethodByName("RewriteQuery"); ok {
			return true
		}
	}
	return false
}
