package otel_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/otel"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }

const ms = time.Millisecond

var (
	quiet = slog.New(slog.NewTextHandler(io.Discard, nil))
	oltp  = workload.With(context.Background(), workload.OLTP)
)

// rig is a partitioned handle whose registry is watched, with what reads the metrics and records the spans.
type rig struct {
	*testing.T
	db     *sql.DB
	reg    *partition.Registry
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer *sdktrace.TracerProvider
}

// telemetry returns a rig without a handle, and an observer for it.
func telemetry(t *testing.T, opts ...otel.Option) (*rig, *otel.Observer) {
	t.Helper()
	r := &rig{T: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	observer, err := otel.NewObserver(append([]otel.Option{otel.WithMeterProvider(provider)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return r, observer
}

func (r *rig) watch(db *sql.DB, err error, observer *otel.Observer) *rig {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { db.Close() })
	r.db = db
	r.reg, _ = partition.RegistryOf(db)
	if _, err := observer.Watch(r.reg); err != nil {
		r.Fatal(err)
	}
	return r
}

func setup(t *testing.T, c partition.PoolConfig, opts ...otel.Option) (*rig, *fakedb.Server) {
	t.Helper()
	r, observer := telemetry(t, opts...)
	server := fakedb.New()
	db, err := partition.OpenDB(server.Connector(), partition.WithLogger(quiet), partition.WithName("orders"),
		partition.WithObserver(observer), partition.WithPool(workload.OLTP, c))
	return r.watch(db, err, observer), server
}

// mustExec may be called on any goroutine.
func (r *rig) mustExec(ctx context.Context, text string) {
	r.Helper()
	if _, err := r.db.ExecContext(ctx, text); err != nil {
		r.Errorf("%s: %v", text, err)
	}
}

// collect returns the metrics by name.
func (r *rig) collect() map[string]metricdata.Metrics {
	r.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &all); err != nil {
		r.Fatal(err)
	}
	byName := make(map[string]metricdata.Metrics)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

// value returns a series of the oltp pool, of a histogram how many it has counted, and whether it is there.
func value(m metricdata.Metrics, extra ...attribute.KeyValue) (float64, bool) {
	set := attribute.NewSet(append(extra, attribute.String("db.client.connection.pool.name", "orders/oltp"))...)
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			if p.Attributes.Equals(&set) {
				return float64(p.Value), true
			}
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			if p.Attributes.Equals(&set) {
				return float64(p.Value), true
			}
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			if p.Attributes.Equals(&set) {
				return p.Value, true
			}
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			if p.Attributes.Equals(&set) {
				return float64(p.Count), true
			}
		}
	}
	return 0, false
}

// refuse is a server that accepts nobody.
func refuse(context.Context, fakedb.Call) error { return errors.New("password=hunter2 refused") }

const dial = fakedb.Dial
