package gate

import (
	"math"
	"sync/atomic"
	"time"
)

// saturation is how long every permit has been in use. It changes with nearly every call of a pool that is just large
// enough, so whoever has read the clock already says what it was.
type saturation struct {
	since atomic.Int64 // on the gate's clock; unsaturated: free
	total atomic.Int64
}

const (
	free         = math.MinInt64 // no time: a permit is free
	unread int64 = math.MinInt64 // the clock was not read yet
)

// mark begins or ends a saturation at the time t. It looks again after each change, since another may have used or parked
// a permit meanwhile, and then saw it as it was.
func (s *saturation) mark(g *Gate, t int64) {
	for {
		saturated, since := g.inUse() >= g.limit.Load(), s.since.Load()
		if saturated == (since != free) {
			return
		}
		if t == unread {
			t = int64(g.clock())
		}
		if saturated {
			s.since.CompareAndSwap(free, t)
		} else if s.since.CompareAndSwap(since, free) {
			s.total.Add(max(t-since, 0)) // another's later reading may have come first
		}
	}
}

// read returns how long the gate has been saturated now, and in all.
func (s *saturation) read(g *Gate) (current, total time.Duration) {
	if since := s.since.Load(); since != free {
		current = max(g.clock()-time.Duration(since), 0)
	}
	return current, time.Duration(s.total.Load()) + current
}
