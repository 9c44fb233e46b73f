package prometheus

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"

	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

var _ prom.Metric = (*sample)(nil)

// series is a metric of a pool, without its value.
type series struct {
	desc   *prom.Desc
	labels []*dto.LabelPair // sorted by name, and without room for more: a registry that adds labels appends to them
	pool   int
	read   func(s *snapshot) float64
}

// newSeries makes all labels but the series' own constant ones, since client_golang compares how the labels of a name are
// made: see the package's documentation on plain handles.
func newSeries(name, help, label, labelValue string, pool int, l poolLabels) series {
	if label == "" {
		return series{desc: prom.NewDesc(name, help, nil, l.constant), labels: l.pairs, pool: pool}
	}
	own := &dto.LabelPair{Name: &label, Value: &labelValue}
	labels := slices.Concat(l.pairs, []*dto.LabelPair{own})
	slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return series{desc: prom.NewDesc(name, help, []string{label}, l.constant), labels: slices.Clip(labels), pool: pool}
}

// Desc implements prometheus.Metric.
func (s *series) Desc() *prom.Desc { return s.desc }

// family is all series of a name.
type family struct {
	kind   prom.ValueType
	series []series // as client_golang sorts them, which is the faster the less there is to be done
	last   atomic.Pointer[[]*sample]
}

// newFamilies makes the series of all values, for pools that have these labels.
func newFamilies(labels []poolLabels) (families []*family) {
	for i, v := range values {
		if i == 0 || v.name != values[i-1].name {
			families = append(families, &family{kind: v.kind})
		}
		f := families[len(families)-1]
		for pool, l := range labels {
			s := newSeries(v.name, v.help, v.label, v.labelValue, pool, l)
			s.read = v.read
			f.series = append(f.series, s)
		}
	}
	for _, f := range families {
		slices.SortStableFunc(f.series, func(a, b series) int {
			return slices.CompareFunc(a.labels, b.labels, func(x, y *dto.LabelPair) int { return cmp.Compare(x.GetValue(), y.GetValue()) })
		})
	}
	return families
}

// sample is the value of a series, and is never changed. It, and distributed, stand in for client_golang's constant metrics,
// which put their labels together and sort their buckets again with every scrape.
type sample struct {
	*series
	value   float64
	counter *dto.Counter // one of them is nil
	gauge   *dto.Gauge
}

func (f *family) newSample(s *series, value float64) *sample {
	x := &sample{series: s, value: value}
	if f.kind == counter {
		x.counter = &dto.Counter{Value: &x.value}
	} else {
		x.gauge = &dto.Gauge{Value: &x.value}
	}
	return x
}

// Write implements prometheus.Metric.
func (s *sample) Write(out *dto.Metric) error {
	out.Label, out.Counter, out.Gauge = s.labels, s.counter, s.gauge
	return nil
}

// collect hands out again what is as it was in the last scrape: that is most of it, and would be most of what a scrape
// allocates.
func (f *family) collect(ch chan<- prom.Metric, snapshots []snapshot) {
	last, now := f.last.Load(), make([]*sample, len(f.series))
	for i := range now {
		s := &f.series[i]
		value := s.read(&snapshots[s.pool])
		if math.IsNaN(value) {
			continue
		}
		if last != nil && (*last)[i] != nil && (*last)[i].value == value {
			now[i] = (*last)[i]
		} else {
			now[i] = f.newSample(s, value)
		}
		ch <- now[i]
	}
	f.last.Store(&now)
}
