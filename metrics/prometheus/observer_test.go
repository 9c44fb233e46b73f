package prometheus_test

import (
	"slices"
	"testing"
	"testing/synctest"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// Two callers: the first has to dial for 50 ms, the other finds its connection idle. They hold for 250 ms and for 2 s.
func TestBucketsCanBeChosen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		observer := prometheus.NewObserver(prometheus.WithWaitBuckets(.1, .0001), prometheus.WithHoldBuckets(.256, .3), prometheus.WithDialBuckets(.0501))
		r := setup(t, partition.WithObserver(observer))
		r.server.On(fakedb.Dial, fakedb.Delay(50*ms))
		r.mustExec(oltp, "sleep 250ms")
		r.mustExec(oltp, "sleep 2s")
		registry := prom.NewRegistry()
		registry.MustRegister(prometheus.NewCollector(r.reg, observer))
		families := gather(t, registry)
		for name, want := range map[string]struct {
			bounds []float64
			counts []uint64
			total  uint64
		}{
			"sqlbulkhead_wait_seconds": {[]float64{.0001, .1}, []uint64{1, 2}, 2},
			"sqlbulkhead_hold_seconds": {[]float64{.25, .3}, []uint64{1, 1}, 2},
			"sqlbulkhead_dial_seconds": {[]float64{.0501}, []uint64{1}, 1},
		} {
			var bounds []float64
			var counts []uint64
			h := families[name].GetMetric()[2].GetHistogram() // oltp's
			for _, b := range h.GetBucket() {
				bounds, counts = append(bounds, b.GetUpperBound()), append(counts, b.GetCumulativeCount())
			}
			if !slices.Equal(bounds, want.bounds) || !slices.Equal(counts, want.counts) || h.GetSampleCount() != want.total {
				t.Errorf("%s: %v", name, h)
			}
		}
	})
}

func TestHistogramsNeedNoObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		registry := prom.NewRegistry()
		registry.MustRegister(prometheus.NewCollector(r.reg, nil))
		r.mustExec(oltp, "sleep 10ms")
		flat := flatten(gather(t, registry))
		for name, want := range map[string]float64{"wait_seconds_count": 1, "hold_seconds_count": 1, "hold_seconds_sum": .01, "dial_seconds_count": 0} {
			if got := flat["sqlbulkhead_"+name+`{db_name="orders",pool="oltp"}`]; got != want {
				t.Errorf("%s = %v, want %v", name, got, want)
			}
		}
	})
}
