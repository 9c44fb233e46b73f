package gate

import (
	"math"
	"sync/atomic"
	"time"
)

// saturation is the clock that runs while every permit is in use. It reads the time only where that changes.
type saturation struct {
	since atomic.Int64 // on the clock of now; unsaturated: free
	total atomic.Int64
}

// free is no time: a permit is free.
const free = math.MinInt64

var epoch = time.Now()

func now() int64 { return int64(time.Since(epoch)) }

// mark starts or stops the clock. It looks again after each change, since another may have used or parked a permit
// meanwhile, and then saw the clock as it was.
func (s *saturation) mark(g *Gate) {
	for {
		saturated, since := g.inUse() >= g.limit.Load(), s.since.Load()
		switch {
		case saturated && since == free:
			s.since.CompareAndSwap(free, now())
		case !saturated && since != free:
			if s.since.CompareAndSwap(since, free) {
				s.total.Add(now() - since)
			}
		default:
			return
		}
	}
}

// read returns how long the gate has been saturated now, and in all.
func (s *saturation) read() (current, total time.Duration) {
	if since := s.since.Load(); since != free {
		current = time.Duration(now() - since)
	}
	return current, time.Duration(s.total.Load()) + current
}
