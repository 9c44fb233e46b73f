package partition

import (
	"sync/atomic"
	"time"
)

// rateSpan is over how long a rate is taken: a burst that a queue bears is shorter.
const rateSpan = 10 * time.Second

// rates is how often a connection is asked for at the peak. Nothing runs for it: who comes looks whether a span is over,
// before he is counted. So all whom a span counts have come within it, however long ago it was over. The owner's lock guards
// all but next.
type rates struct {
	next  atomic.Int64 // when the span is over
	began time.Duration
	count uint64 // of all who had come by then
	peak  float64
}

func (r *rates) begin(t time.Duration) {
	r.began = t
	r.next.Store(int64(t + rateSpan))
}

// due reports whether a span is over.
func (r *rates) due(t time.Duration) bool { return int64(t) >= r.next.Load() }

// noteLocked ends the span, if it is over.
func (r *rates) noteLocked(t time.Duration, arrivals uint64) {
	if !r.due(t) {
		return
	}
	r.peak = max(r.peak, r.since(arrivals)/rateSpan.Seconds())
	r.count = max(r.count, arrivals)
	r.begin(t)
}

// since is how many have come in the span. Somebody who leaves the queue is for a moment in none of the counts that
// arrivals is the sum of, so that it may be less than it was.
func (r *rates) since(arrivals uint64) float64 { return float64(arrivals - min(arrivals, r.count)) }

// peakLocked is the most per second. A span that has only begun counts where it is all that there is, or half over.
func (r *rates) peakLocked(t time.Duration, arrivals uint64) float64 {
	span := min(t-r.began, rateSpan)
	if r.peak > 0 && span < rateSpan/2 {
		return r.peak
	}
	return max(r.peak, r.since(arrivals)/max(span, time.Second).Seconds())
}
