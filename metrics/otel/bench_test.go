package otel_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/otel"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Each benchmark is one of package partition's, on a driver that does nothing: as plain database/sql, as partitioned, and with
// metrics on: with a producer, as the SDK keeps histograms, and without any. `make bench` prints the differences. What the
// partition adds to plain may be 1.3 times as much with metrics as the bound without them, but where the SDK records each call.

// enforcing is the dialect of a server that keeps the statement timeout itself.
type enforcing struct{ stmttimeout.Dialect }

func (enforcing) Setup(_ context.Context, _ stmttimeout.Session, want stmttimeout.Settings) (stmttimeout.Applied, error) {
	return stmttimeout.Applied{
		Enforcement:      stmttimeout.EnforcedBySession,
		StatementTimeout: want.StatementTimeout,
		Restore:          []string{"set"},
	}, nil
}

// open returns a handle that is watched, if there is an observer.
func open(b *testing.B, observer *otel.Observer) *sql.DB {
	opts := []partition.Option{
		partition.WithLogger(quiet), partition.WithDialect(enforcing{stmttimeout.Postgres()}),
		partition.WithPool(workload.OLTP, partition.PoolConfig{LeakAfter: time.Second, MaxHold: time.Minute}),
	}
	if observer != nil {
		opts = append(opts, partition.WithObserver(observer))
	}
	db, err := partition.OpenDB(fakedb.Null(), opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	if observer != nil {
		registry, _ := partition.RegistryOf(db)
		if _, err := observer.Watch(registry); err != nil {
			b.Fatal(err)
		}
	}
	return db
}

func newObserver(b *testing.B, producer *otel.Producer, opts ...otel.Option) *otel.Observer {
	var with []sdkmetric.ManualReaderOption
	if producer != nil {
		with, opts = append(with, sdkmetric.WithProducer(producer)), append(opts, otel.WithProducer(producer))
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader(with...)))
	o, err := otel.NewObserver(append(opts, otel.WithMeterProvider(provider))...)
	if err != nil {
		b.Fatal(err)
	}
	return o
}

func each(b *testing.B, run func(*testing.B, *sql.DB, context.Context)) {
	b.Run("plain", func(b *testing.B) { run(b, sql.OpenDB(fakedb.Null()), oltp) })
	b.Run("partitioned", func(b *testing.B) { run(b, open(b, nil), oltp) })
	b.Run("producer", func(b *testing.B) { run(b, open(b, newObserver(b, otel.NewProducer())), oltp) })
	b.Run("without-histograms", func(b *testing.B) { run(b, open(b, newObserver(b, nil, otel.WithoutHistograms())), oltp) })
	b.Run("sdk", func(b *testing.B) { run(b, open(b, newObserver(b, nil)), oltp) })
}

func BenchmarkExecWithOTel(b *testing.B) {
	each(b, fakedb.BenchExec)
}

func BenchmarkQueryRowWithOTel(b *testing.B) {
	each(b, fakedb.BenchQueryRow)
}
