package prometheus_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

const ms = time.Millisecond

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// rig is a fake server, a partitioned handle on it, and a registry of metrics that has its collector.
type rig struct {
	*testing.T
	server   *fakedb.Server
	db       *sql.DB
	reg      *partition.Registry
	gatherer *prom.Registry
}

func setup(t *testing.T, opts ...partition.Option) *rig {
	t.Helper()
	observer, server := prometheus.NewObserver(), fakedb.New()
	opts = append([]partition.Option{partition.WithLogger(quiet), partition.WithName("orders"), partition.WithObserver(observer)}, opts...)
	db, err := partition.OpenDB(server.Connector(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r := &rig{T: t, server: server, db: db, gatherer: prom.NewPedanticRegistry()}
	r.reg, _ = partition.RegistryOf(db)
	r.gatherer.MustRegister(prometheus.NewCollector(r.reg, observer))
	return r
}

// in is a context tagged with a workload.
func in(name workload.Name) context.Context { return workload.With(context.Background(), name) }

var oltp = in(workload.OLTP)

func pool(name workload.Name, c partition.PoolConfig) partition.Option {
	return partition.WithPool(name, c)
}

// mustExec may be called on any goroutine.
func (r *rig) mustExec(ctx context.Context, text string) {
	r.Helper()
	if _, err := r.db.ExecContext(ctx, text); err != nil {
		r.Errorf("%s: %v", text, err)
	}
}

// gather returns the families by name.
func gather(t testing.TB, g prom.Gatherer) map[string]*dto.MetricFamily {
	t.Helper()
	list, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families := make(map[string]*dto.MetricFamily)
	for _, f := range list {
		families[f.GetName()] = f
	}
	return families
}

// flatten returns the values as name{label="value",…}; of histograms the _count and the _sum.
func flatten(families map[string]*dto.MetricFamily) map[string]float64 {
	flat := make(map[string]float64)
	for name, f := range families {
		for _, m := range f.GetMetric() {
			labels := labelsOf(m)
			switch f.GetType() {
			case dto.MetricType_HISTOGRAM:
				flat[name+"_count"+labels] = float64(m.GetHistogram().GetSampleCount())
				flat[name+"_sum"+labels] = m.GetHistogram().GetSampleSum()
			case dto.MetricType_COUNTER:
				flat[name+labels] = m.GetCounter().GetValue()
			default:
				flat[name+labels] = m.GetGauge().GetValue()
			}
		}
	}
	return flat
}

func labelsOf(m *dto.Metric) string {
	var parts []string
	for _, l := range m.GetLabel() {
		parts = append(parts, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// want fails the test for each of the oltp pool's series, without their common labels, that is not as it should be.
func (r *rig) want(expected map[string]float64) {
	r.Helper()
	flat := flatten(gather(r, r.gatherer))
	for name, v := range expected {
		key := name + `{db_name="orders",pool="oltp"}`
		if base, label, ok := strings.Cut(name, "/"); ok {
			key = base + `{db_name="orders",pool="oltp",reason="` + label + `"}`
			if base == "sqlbulkhead_statements_ended_total" {
				key = base + `{db_name="orders",outcome="` + label + `",pool="oltp"}`
			}
		}
		if got, ok := flat[key]; !ok || got != v {
			r.Errorf("%s = %v (there: %v), want %v", key, got, ok, v)
		}
	}
}
