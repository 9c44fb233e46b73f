package driver

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// guard is a deadline on the driver calls of one physical connection.
//
// A timer per call would cost more than everything else here together. So there is one timer per connection, and a
// call only stores its deadline: a timer that fires early looks at the deadline of the call that now runs, and sets
// itself anew; one that finds no call stops.
//
// The end of a call and the firing of its guard race for one word, state, by compare-and-swap. It carries the number
// of the call, so that a late timer can never end the call after the one it was set for.
//
// The same word says whether the connection may be taken away from its borrower: revoke makes it fired, too, and then no
// further call can begin. Who finds its call fired says with leave when it has nothing more to do with the connection.
//
// enter, enterLazily, enterLate, exit and leave belong to the goroutine that has the connection checked out; after exit
// reported a fired guard, only a late call may enter (the connection is doomed).
type guard struct {
	// What every call touches comes first, close together.
	state    atomic.Uint64      // number of the call, what the borrower is doing, and whether a call runs
	deadline atomic.Int64       // of the call that runs; stored before state
	slack    atomic.Int64       // of the last call that had one
	cancel   context.CancelFunc // of the call that runs; written before state, read by who fired it
	rest     uint64             // the state in which a call was ended last
	doing    uint64             // doingRows, doingTx: goes into state with the next call that begins or ends
	armed    atomic.Int64       // when timer will fire; 0: it is not set
	isLate   bool               // the call that runs
	caller   context.Context    // of the call that runs, if it is to be watched; as cancel, and read by who watches it

	left  chan struct{} // closed by leave
	late  chan struct{} // has room for one: a late call, or who has the connection from its borrower
	stuck func()        // ends a call that goes on for stuckAfter after it was cancelled
	mend  func()        // undoes cancel after a call that is watched

	mu       sync.Mutex // held to set timer and armed together, and guards what follows
	timer    *time.Timer
	seen     uint64 // state of the lazy call that a tick has seen first
	seenTill time.Duration
	stuckAt  time.Duration // when the call that was ended, or a late one, is stuck; 0: none goes on
	unwatch  func() bool   // stops the watch of the call that runs; nil: it has none
}

// The low bits of the state.
const (
	running = 1 << iota
	doingRows
	doingTx
	lazy      // the call that runs has a deadline that need not be exact
	watchable // it has a caller; or, where none runs, the last one had
	watched   // and that is watched, so that the call's end has to come by the lock
	cut       // and its context has ended, so that the call was cancelled
	firstCall
)

// fired is a state that no call has: the guard won the race.
const fired = math.MaxUint64

// stuckAfter is how long a driver has to end a call that was cancelled.
const stuckAfter = time.Second

func (g *guard) init(stuck func()) {
	g.left, g.late, g.stuck = make(chan struct{}), make(chan struct{}, 1), stuck
	g.timer = time.AfterFunc(math.MaxInt64, g.tick)
	g.timer.Stop()
}

// enter begins a call that cancel will end at deadline, or rather its first driver call: further ones may enter lazily.
// slack is how much of the time to deadline is slack. It is false, and the call must not be made, once the guard has
// fired. Where caller is not nil the call ends with that context, too: see look.
func (g *guard) enter(deadline, slack time.Duration, cancel context.CancelFunc, caller context.Context, lookAt time.Duration) bool {
	g.keep(deadline, slack)
	last := g.state.Load()
	if !g.begin(last, cancel, caller, running) {
		return false
	}
	if caller != nil {
		g.look(last, lookAt)
	}
	if deadline < forever {
		g.wakeBy(deadline - slack)
	}
	return true
}

// forever is the deadline of a call without one.
const forever = time.Duration(math.MaxInt64)

// past is the deadline of a lazy call that has its slack alone. (The clock's zero is arbitrary, and may be yet to come.)
const past = -forever

// enterLazily begins a driver call that cancel will end at deadline or, if a tick first sees it later than slack before
// that, slack after that tick. It does not read the clock, which is what counts where rows are fetched by the million; and
// where the deadline is that of the call before, as it is then, it writes nothing but state.
// A call that hangs is so ended at deadline, since there is a tick slack before it; one that begins to hang later, when
// its consumer has taken its time, at most two slacks after it began.
func (g *guard) enterLazily(deadline, slack time.Duration, cancel context.CancelFunc, caller context.Context, lookAt time.Duration) bool {
	g.keep(deadline, slack)
	last := g.state.Load()
	if !g.begin(last, cancel, caller, running|lazy) {
		return false
	}
	if caller != nil {
		g.look(last, lookAt)
	}
	g.wakeWithin(slack)
	return true
}

// keep remembers a deadline, and the slack of a call that has one. (A call that has none is only looked at once too often
// for another's.) To look is cheaper than to store.
func (g *guard) keep(deadline, slack time.Duration) {
	if g.deadline.Load() != int64(deadline) {
		g.deadline.Store(int64(deadline))
	}
	if slack > 0 && g.slack.Load() != int64(slack) {
		g.slack.Store(int64(slack))
	}
}

// wakeBy sees to it that a tick comes no later than at. Either its load sees that the timer is not set (or too late),
// or the tick that is about to let it rest sees the state that begin stored and sets it anew.
func (g *guard) wakeBy(at time.Duration) {
	if armed := g.armed.Load(); armed == 0 || armed > int64(at) {
		g.arm(at)
	}
}

// wakeWithin sees to it that a tick comes, d from now if none was to come. Only then does it read the clock.
func (g *guard) wakeWithin(d time.Duration) {
	if g.armed.Load() == 0 {
		g.armIn(d)
	}
}

// begin begins the call after that which left the state last.
func (g *guard) begin(last uint64, cancel context.CancelFunc, caller context.Context, how uint64) bool {
	if last == fired {
		return false
	}
	g.cancel = cancel
	if caller != nil {
		g.caller = caller
		how |= watchable
	}
	return g.state.CompareAndSwap(last, g.next(last)|how)
}

// next is the number of the call after that which left the state last, and what the borrower is doing.
func (g *guard) next(last uint64) uint64 { return (last | (firstCall - 1)) + 1 | g.doing }

// over is the state that the end of call s leaves.
func (g *guard) over(s uint64) uint64 { return s&^(firstCall-1-watchable) | g.doing }

// enterLate begins a call that is made although the guard has fired. There is nothing left to cancel it by: if it takes
// stuckAfter it is stuck. It is false where letGo was first.
func (g *guard) enterLate() bool {
	select {
	case g.late <- struct{}{}:
	default:
		return g.isLate
	}
	g.isLate = true
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stuckAt = Now() + stuckAfter
	g.armLocked(g.stuckAt)
	return true
}

// again begins, lazily, a further driver call of a statement whose last one left the state rest. It is false if the guard has
// fired, or another statement's call has begun since: only then anything but the state has changed.
func (g *guard) again(rest uint64, slack time.Duration) bool {
	if !g.state.CompareAndSwap(rest, g.next(rest)|running|lazy) {
		return false
	}
	g.wakeWithin(slack)
	return true
}

// exit ends the call that runs and reports whether its guard had fired. If not, rest is the state that it leaves.
func (g *guard) exit() (guarded bool) {
	s := g.state.Load()
	g.rest = g.over(s)
	if s&watched == 0 && g.state.CompareAndSwap(s, g.rest) {
		return false
	}
	return g.exitWatched()
}

// leave is the last thing that a borrower does with a connection whose guard has fired.
func (g *guard) leave() {
	select {
	case <-g.left:
	default:
		close(g.left)
	}
}

// revoke keeps further calls from beginning, and ends the one that runs as if its deadline had passed. It returns the state
// that it found: if a call was running, or the guard had fired before, the connection is free when letGo says so.
func (g *guard) revoke() uint64 {
	for {
		s := g.state.Load()
		if s == fired || g.state.CompareAndSwap(s, fired) {
			if s != fired && s&running != 0 {
				g.cancel()
			}
			return s
		}
	}
}

// letGo waits at most d for the borrower of a revoked connection to end its call, and keeps it from another late one.
func (g *guard) letGo(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-g.left:
	case <-timer.C:
		return false
	}
	select {
	case g.late <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

// arm sets the timer to fire at at, unless it is to fire sooner.
func (g *guard) arm(at time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armLocked(at)
}

// armIn is arm for d from now.
func (g *guard) armIn(d time.Duration) { g.arm(Now() + d) }

func (g *guard) armLocked(at time.Duration) {
	if armed := g.armed.Load(); armed == 0 || armed > int64(at) {
		g.armed.Store(int64(at))
		g.timer.Reset(at - Now())
	}
}

func (g *guard) tick() {
	if end := g.expire(); end != nil {
		end()
	}
}

// expire ends the call that runs if its deadline has passed, and returns how the driver is told. Otherwise it sets the
// timer for that deadline, or lets it rest if there is no call. A call that was ended and goes on is stuck.
func (g *guard) expire() context.CancelFunc {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed.Store(0)
	for {
		s := g.state.Load()
		switch {
		case s == fired:
			return g.endStuckLocked()
		case s&running == 0:
			return nil
		case s&cut != 0:
			if Now() < g.stuckAt {
				g.armLocked(g.stuckAt)
				return nil
			}
			if g.state.CompareAndSwap(s, fired) {
				return g.stuck
			}
			continue
		case s&(watchable|watched) == watchable:
			if !g.state.CompareAndSwap(s, s|watched) {
				continue
			}
			s |= watched
			g.watchLocked(s)
		}
		t := Now()
		at := g.deadlineLocked(s, t)
		if at == forever {
			return nil
		}
		if at > t {
			// A first look slack before the end, for a lazy call that may follow in this one's place.
			if early := at - time.Duration(g.slack.Load()); early > t {
				at = early
			}
			g.armLocked(at)
			return nil
		}
		if g.state.CompareAndSwap(s, fired) {
			g.stuckAt = t + stuckAfter
			g.armLocked(g.stuckAt)
			return g.cancel
		}
	}
}

// endStuckLocked is for a tick that finds the guard fired. If it was revoked, who did that sees to the rest.
func (g *guard) endStuckLocked() func() {
	switch {
	case g.stuckAt == 0:
		return nil
	case Now() < g.stuckAt: // a tick that was set before the other fired
		g.armLocked(g.stuckAt)
		return nil
	}
	return g.stuck
}

// deadlineLocked is the deadline of call s. If another call has begun meanwhile it is that one's, or a mixture: then
// the compare-and-swap on s fails, or the timer is set too early and looks again.
func (g *guard) deadlineLocked(s uint64, t time.Duration) time.Duration {
	at := time.Duration(g.deadline.Load())
	if s&lazy == 0 {
		return at
	}
	if g.seen != s {
		g.seen = s
		g.seenTill = max(at, t+time.Duration(g.slack.Load()))
	}
	return g.seenTill
}

// stop is for a connection that is closed.
func (g *guard) stop() {
	g.timer.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unwatchLocked()
}
