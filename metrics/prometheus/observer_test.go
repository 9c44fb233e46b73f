package prometheus_test

import (
	"testing"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestBucketsCanBeChosen(t *testing.T) {
	t.Parallel()
	observer := prometheus.NewObserver(prometheus.WithWaitBuckets(.1), prometheus.WithHoldBuckets(.2, .3), prometheus.WithDialBuckets())
	registry := prom.NewRegistry()
	registry.MustRegister(prometheus.NewCollector(setup(t).reg, observer))
	observer.AcquireDone(t.Context(), partition.AcquireEvent{Pool: workload.OLTP, Waited: 50 * ms})
	observer.Released(partition.ReleaseEvent{Pool: workload.OLTP, Held: 250 * ms})
	observer.ConnOpened(partition.ConnEvent{Pool: workload.OLTP, Took: 50 * ms})
	families := gather(t, registry)
	for name, want := range map[string][]uint64{
		"sqlbulkhead_wait_seconds": {1}, "sqlbulkhead_hold_seconds": {0, 1}, "sqlbulkhead_dial_seconds": {},
	} {
		for _, m := range families[name].GetMetric() {
			if m.GetLabel()[1].GetValue() != "oltp" {
				continue
			}
			h := m.GetHistogram()
			if len(h.GetBucket()) != len(want) || h.GetSampleCount() != 1 {
				t.Fatalf("%s: %v", name, h)
			}
			for i, b := range h.GetBucket() {
				if b.GetCumulativeCount() != want[i] {
					t.Errorf("%s: %v", name, h)
				}
			}
		}
	}
}
