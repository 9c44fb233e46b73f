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

// readLocked returns how long the gate has been saturated now, and in all, which is never less than it was: a spell that
// ends is in neither for a moment, and its end may have been read from the clock before the last time that was told.
func (s *saturation) readLocked(g *Gate) (current, total time.Duration) {
	since, ended := s.since.Load(), s.total.Load()
	for s.since.Load() != since { // else what has ended just now would be in both
		since, ended = s.since.Load(), s.total.Load()
	}
	if since != free {
		current = max(g.clock()-time.Duration(since), 0)
	}
	g.saturatedTold = max(g.saturatedTold, time.Duration(ended)+current)
	return current, g.saturatedTold
}
