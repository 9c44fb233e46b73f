package prometheus

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// Upper bounds of buckets in seconds. They are few, since each is a series per pool, and where the limits of pools usually
// lie: acquire timeouts of 50 ms to 5 s, statement timeouts of 5 s to 15 min.
var (
	defaultWait = []float64{.0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	defaultHold = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 15, 60, 300, 900}
	defaultDial = []float64{.001, .005, .025, .1, .5, 1, 5}
)

// bounds are the upper bounds of a histogram's buckets, ascending; the bucket above them all has none.
type bounds struct {
	seconds []float64
	limits  []time.Duration // the same, to be compared with
}

func newBounds(seconds []float64) bounds {
	b := bounds{seconds: slices.Clone(seconds)}
	b.seconds = slices.DeleteFunc(b.seconds, func(s float64) bool { return math.IsInf(s, 1) || math.IsNaN(s) })
	slices.Sort(b.seconds)
	b.seconds = slices.Compact(b.seconds)
	for _, s := range b.seconds {
		// What no duration can hold would come out of the conversion as any, a negative one too.
		s = max(-endless, min(s, endless))
		b.limits = append(b.limits, time.Duration(math.Round(s*float64(time.Second))))
	}
	return b
}

// endless is longer than anything that is measured, in seconds: 31 years.
const endless = 1e9

// kept returns the bounds that are nearest to b of those that the pools' own histograms have.
func (b bounds) kept() bounds {
	var seconds []float64
	for _, limit := range b.limits {
		seconds = append(seconds, float64(partition.HistogramBound(limit))/float64(time.Second))
	}
	return newBounds(seconds)
}

// histogram counts durations without a lock. A snapshot that is taken meanwhile may lack the sum of what it counts already, or
// have it too early.
type histogram struct {
	bounds bounds
	counts []atomic.Uint64 // one more than there are bounds
	sum    atomic.Int64    // in nanoseconds
}

func newHistogram(b bounds) *histogram {
	return &histogram{bounds: b, counts: make([]atomic.Uint64, len(b.limits)+1)}
}

// observe looks for the bucket from below: most of what is counted is short.
func (h *histogram) observe(d time.Duration) {
	i := 0
	for i < len(h.bounds.limits) && d > h.bounds.limits[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) read() durations {
	d := durations{atMost: make([]uint64, len(h.bounds.limits)), sum: time.Duration(h.sum.Load())}
	for i := range h.counts {
		d.total += h.counts[i].Load()
		if i < len(d.atMost) {
			d.atMost[i] = d.total
		}
	}
	return d
}
