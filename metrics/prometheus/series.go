package prometheus

import (
	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

var (
	_ prom.Metric = (*sample)(nil)
	_ prom.Metric = distribution{}
)

// series is a metric of a pool, without its value.
type series struct {
	desc   *prom.Desc
	labels []*dto.LabelPair
}

func newSeries(name, help, label, labelValue string, constant prom.Labels) series {
	if label == "" {
		desc := prom.NewDesc(name, help, nil, constant)
		return series{desc, prom.MakeLabelPairs(desc, nil)}
	}
	desc := prom.NewDesc(name, help, []string{label}, constant)
	return series{desc, prom.MakeLabelPairs(desc, []string{labelValue})}
}

// Desc implements prometheus.Metric.
func (s *series) Desc() *prom.Desc { return s.desc }

// sample is the value of a series. It, and distribution, stand in for client_golang's constant metrics, which put their
// labels together and sort their buckets again with every scrape.
type sample struct {
	*series
	kind  prom.ValueType
	value float64
}

// Write implements prometheus.Metric.
func (s *sample) Write(out *dto.Metric) error {
	out.Label = s.labels
	if s.kind == prom.CounterValue {
		out.Counter = &dto.Counter{Value: &s.value}
	} else {
		out.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}

// distribution is a histogram.
type distribution struct {
	*series
	of *histogram
}

// Write implements prometheus.Metric.
func (d distribution) Write(out *dto.Metric) error {
	atMost, total, sum := d.of.cumulative()
	seconds := sum.Seconds()
	buckets := make([]dto.Bucket, len(atMost))
	h := &dto.Histogram{SampleCount: &total, SampleSum: &seconds, Bucket: make([]*dto.Bucket, len(atMost))}
	for i := range buckets {
		buckets[i].UpperBound, buckets[i].CumulativeCount = &d.of.bounds.seconds[i], &atMost[i]
		h.Bucket[i] = &buckets[i]
	}
	out.Label, out.Histogram = d.labels, h
	return nil
}
