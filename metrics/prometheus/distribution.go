package prometheus

import (
	"slices"
	"sync/atomic"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

var _ prom.Metric = (*distributed)(nil)

// durations are what a histogram says of one pool.
type durations struct {
	atMost []uint64 // each bound
	total  uint64
	sum    time.Duration
}

func (d durations) equal(o durations) bool {
	return d.total == o.total && d.sum == o.sum && slices.Equal(d.atMost, o.atMost)
}

// distribution is all histograms of a name.
type distribution struct {
	bounds bounds
	series []series // in the order of the pools
	of     func(w watched, b bounds) durations
	last   atomic.Pointer[[]*distributed]
}

func newDistribution(h histogramRow, o *Observer, labels []poolLabels) *distribution {
	d := &distribution{bounds: h.bounds(o), of: h.of}
	for pool, l := range labels {
		d.series = append(d.series, newSeries(h.name, h.help, "", "", pool, l))
	}
	return d
}

// distributed is the histogram of one pool, and is never changed.
type distributed struct {
	*series
	durations
	seconds   float64
	histogram dto.Histogram
}

func (d *distribution) newDistributed(s *series, of durations) *distributed {
	x := &distributed{series: s, durations: of, seconds: of.sum.Seconds()}
	buckets, list := make([]dto.Bucket, len(of.atMost)), make([]*dto.Bucket, len(of.atMost))
	for i := range buckets {
		list[i] = &buckets[i]
		list[i].UpperBound, list[i].CumulativeCount = &d.bounds.seconds[i], &x.atMost[i]
	}
	x.histogram.SampleCount, x.histogram.SampleSum, x.histogram.Bucket = &x.total, &x.seconds, list
	return x
}

// Write implements prometheus.Metric.
func (d *distributed) Write(out *dto.Metric) error {
	out.Label, out.Histogram = d.labels, &d.histogram
	return nil
}

// collect hands out again what is as it was: see family.
func (d *distribution) collect(ch chan<- prom.Metric, pools []watched) {
	last, now := d.last.Load(), make([]*distributed, len(d.series))
	for i := range now {
		s := &d.series[i]
		of := d.of(pools[s.pool], d.bounds)
		if last != nil && (*last)[i].durations.equal(of) {
			now[i] = (*last)[i]
		} else {
			now[i] = d.newDistributed(s, of)
		}
		ch <- now[i]
	}
	d.last.Store(&now)
}
