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
// enter and exit belong to the goroutine that has the connection checked out; after exit reported a fired guard,
// enter must not be called again (the connection is doomed).
type guard struct {
	state    atomic.Uint64      // number of the call <<1, plus running
	deadline atomic.Int64       // of the call that runs; stored before state
	cancel   context.CancelFunc // of the call that runs; written before state, read by who fired it

	mu    sync.Mutex   // held to set timer and armed together
	armed atomic.Int64 // when timer will fire; 0: it is not set
	timer *time.Timer
}

const running = 1

// fired is a state that no call has: the guard won the race.
const fired = math.MaxUint64

func newGuard() *guard {
	g := new(guard)
	g.timer = time.AfterFunc(math.MaxInt64, g.tick)
	g.timer.Stop()
	return g
}

// enter begins a call that cancel will end at deadline.
func (g *guard) enter(deadline time.Duration, cancel context.CancelFunc) {
	g.cancel = cancel
	g.deadline.Store(int64(deadline))
	g.state.Store((g.state.Load()>>1+1)<<1 | running)
	// Either this load sees that the timer is not set (or too late), or the tick that is about to let it rest sees the
	// state stored above and sets it anew.
	if armed := g.armed.Load(); armed == 0 || armed > int64(deadline) {
		g.arm(deadline)
	}
}

// exit ends the call that runs and reports whether its guard had fired.
func (g *guard) exit() (guarded bool) {
	s := g.state.Load()
	return s == fired || !g.state.CompareAndSwap(s, s&^running)
}

// arm sets the timer to fire at at, unless it is to fire sooner.
func (g *guard) arm(at time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if armed := g.armed.Load(); armed == 0 || armed > int64(at) {
		g.armed.Store(int64(at))
		g.timer.Reset(at - Now())
	}
}

func (g *guard) tick() {
	g.mu.Lock()
	g.armed.Store(0)
	g.mu.Unlock()
	for {
		s := g.state.Load()
		if s == fired || s&running == 0 {
			return
		}
		if at := time.Duration(g.deadline.Load()); at > Now() {
			g.arm(at)
			return
		}
		if g.state.CompareAndSwap(s, fired) {
			g.cancel()
			return
		}
	}
}

// stop is for a connection that is closed.
func (g *guard) stop() { g.timer.Stop() }
