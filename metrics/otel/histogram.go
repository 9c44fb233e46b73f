package otel

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Bounds of the histograms, in seconds. The conventions name none, and the SDK's own are for milliseconds.
var (
	waitBounds = []float64{.0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	useBounds  = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 900}
	dialBounds = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 5}
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

// histogram is one that is kept here, without a lock: every call of the service passes here, on every processor at once. A
// point that is read meanwhile may lack the sum of what it counts already, or have it too early, by as many calls as are in
// progress.
type histogram struct {
	bounds []float64
	limits []time.Duration // the same, to be compared with
	counts []atomic.Uint64 // one more
	sum    atomic.Int64    // in nanoseconds
}

func newHistogram(bounds []float64) *histogram {
	h := &histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
	for _, s := range bounds {
		h.limits = append(h.limits, time.Duration(math.Round(s*float64(time.Second))))
	}
	return h
}

// record looks for the bucket from below: most of what is counted is short.
func (h *histogram) record(_ context.Context, d time.Duration) {
	i := 0
	for i < len(h.limits) && d > h.limits[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) point() metricdata.HistogramDataPoint[float64] {
	p := metricdata.HistogramDataPoint[float64]{Bounds: slices.Clone(h.bounds), BucketCounts: make([]uint64, len(h.counts))}
	p.Sum = time.Duration(h.sum.Load()).Seconds()
	for i := range h.counts {
		p.BucketCounts[i] = h.counts[i].Load()
		p.Count += p.BucketCounts[i]
	}
	return p
}
