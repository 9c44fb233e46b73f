package otel

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// Bounds of the histograms, in seconds. The conventions name none, and the SDK's own are for milliseconds.
var (
	waitBounds = newBounds(.0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 5)
	useBounds  = newBounds(.0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 15, 60, 300, 900)
	dialBounds = newBounds(.001, .005, .025, .1, .5, 1, 5)
)

var (
	_ recorder = instrument{}
	_ recorder = (*histogram)(nil)
)

// recorder is a histogram of one pool.
type recorder interface {
	record(ctx context.Context, d time.Duration)
}

// instrument is one that the SDK keeps.
type instrument struct {
	metric.Float64Histogram
	options []metric.RecordOption // put together once
}

func (i instrument) record(ctx context.Context, d time.Duration) {
	i.Record(ctx, d.Seconds(), i.options...)
}

// bounds are the upper bounds of a histogram's buckets.
type bounds struct {
	seconds []float64
	limits  []time.Duration // the same, to be compared with
}

func newBounds(seconds ...float64) bounds {
	b := bounds{seconds: seconds}
	for _, s := range seconds {
		b.limits = append(b.limits, time.Duration(math.Round(s*float64(time.Second))))
	}
	return b
}

// histogram is one that is kept here, without a lock. A point that is read meanwhile may lack the sum of what it counts already,
// or have it too early.
type histogram struct {
	bounds bounds
	counts []atomic.Uint64 // one more
	sum    atomic.Int64    // in nanoseconds
}

func newHistogram(b bounds) *histogram {
	return &histogram{bounds: b, counts: make([]atomic.Uint64, len(b.limits)+1)}
}

// record looks for the bucket from below: most of what is counted is short.
func (h *histogram) record(_ context.Context, d time.Duration) {
	i := 0
	for i < len(h.bounds.limits) && d > h.bounds.limits[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

// point is a histogram as the SDK exports it.
type point = metricdata.HistogramDataPoint[float64]

func (h *histogram) point() point {
	p := newPoint(h.bounds, time.Duration(h.sum.Load()))
	for i := range h.counts {
		p.BucketCounts[i] = h.counts[i].Load()
		p.Count += p.BucketCounts[i]
	}
	return p
}

// pointOf is one that a pool keeps.
func pointOf(h partition.Histogram, b bounds) point {
	p := newPoint(b, h.Sum)
	p.Count = h.Count
	below := uint64(0)
	for i, n := range append(h.AtMost(b.limits), h.Count) {
		p.BucketCounts[i], below = n-below, n
	}
	return p
}

func newPoint(b bounds, sum time.Duration) point {
	return point{Bounds: slices.Clone(b.seconds), BucketCounts: make([]uint64, len(b.seconds)+1), Sum: sum.Seconds()}
}

// difference is what has come to a histogram since it was as last.
func difference(last, now point) point {
	now.Count -= last.Count
	now.Sum -= last.Sum
	now.BucketCounts = slices.Clone(now.BucketCounts)
	for i, n := range last.BucketCounts {
		now.BucketCounts[i] -= n
	}
	return now
}
