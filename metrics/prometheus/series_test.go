package prometheus_test

import (
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus"
)

func TestWhatWasGatheredDoesNotChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.mustExec(oltp, "sleep 1ms")
		first := gather(t, r.gatherer)
		before := flatten(first)
		r.mustExec(oltp, "sleep 2ms")
		second := flatten(gather(t, r.gatherer))
		if !maps.Equal(flatten(first), before) {
			t.Error("the first scrape has changed")
		}
		for name, want := range map[string][2]float64{
			"sqlbulkhead_hold_seconds_sum": {.001, .003}, "sqlbulkhead_acquires_total": {1, 2}, "sqlbulkhead_dial_seconds_count": {1, 1},
		} {
			name += `{db_name="orders",pool="oltp"}`
			if before[name] != want[0] || second[name] != want[1] {
				t.Errorf("%s: %v, and then %v", name, before[name], second[name])
			}
		}
	})
}

// A registry that adds labels puts them in order, whose labels they are added to.
func TestLabelsThatARegistryAddsAreItsOwn(t *testing.T) {
	t.Parallel()
	r := setup(t)
	wrapped, plain := prom.NewRegistry(), prom.NewRegistry()
	c := prometheus.NewCollector(r.reg, nil)
	prom.WrapRegistererWith(prom.Labels{"a": "first"}, wrapped).MustRegister(c)
	plain.MustRegister(c)
	for range 2 {
		if _, ok := flatten(gather(t, wrapped))[`sqlbulkhead_rejections_total{a="first",db_name="orders",pool="oltp",reason="paused"}`]; !ok {
			t.Error("added labels are missing")
		}
		if _, ok := flatten(gather(t, plain))[`sqlbulkhead_rejections_total{db_name="orders",pool="oltp",reason="paused"}`]; !ok {
			t.Error("labels have changed")
		}
	}
}

func TestScrapesMayOverlap(t *testing.T) {
	t.Parallel()
	r := setup(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				r.mustExec(oltp, "ok")
				if _, err := r.gatherer.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
