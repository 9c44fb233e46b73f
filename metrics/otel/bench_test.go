package otel_test

import (
	"context"
	"database/sql"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/otel"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func exec(b *testing.B, db *sql.DB, ctx context.Context) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := db.ExecContext(ctx, "UPDATE accounts SET seen = now() WHERE id = 1"); err != nil {
			b.Fatal(err)
		}
	}
}

// observed is a handle on a driver that does nothing, watched if there is an observer.
func observed(b *testing.B, observer *otel.Observer) *sql.DB {
	opts := []partition.Option{partition.WithLogger(quiet), partition.WithDialect(stmttimeout.ClientOnly())}
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

// each runs a benchmark with metrics on: without the histograms, with a producer that keeps them, and as the SDK does.
func each(b *testing.B, run func(*testing.B, *otel.Observer)) {
	b.Run("without-histograms", func(b *testing.B) { run(b, newObserver(b, nil, otel.WithoutHistograms())) })
	b.Run("producer", func(b *testing.B) { run(b, newObserver(b, otel.NewProducer())) })
	b.Run("sdk", func(b *testing.B) { run(b, newObserver(b, nil)) })
}

// BenchmarkObservedExec is a call as plain database/sql, as partitioned, and with metrics on.
func BenchmarkObservedExec(b *testing.B) {
	b.Run("plain", func(b *testing.B) { exec(b, sql.OpenDB(fakedb.Null()), oltp) })
	b.Run("partitioned", func(b *testing.B) { exec(b, observed(b, nil), oltp) })
	each(b, func(b *testing.B, o *otel.Observer) { exec(b, observed(b, o), oltp) })
}

func BenchmarkObservedQueryRow(b *testing.B) {
	b.Run("plain", func(b *testing.B) { queryRow(b, sql.OpenDB(fakedb.Null())) })
	b.Run("partitioned", func(b *testing.B) { queryRow(b, observed(b, nil)) })
	each(b, func(b *testing.B, o *otel.Observer) { queryRow(b, observed(b, o)) })
}

func queryRow(b *testing.B, db *sql.DB) {
	b.ReportAllocs()
	for b.Loop() {
		var v int64
		if err := db.QueryRowContext(oltp, "SELECT id FROM accounts WHERE id = 1").Scan(&v); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkObserve is what the observer itself does for one call.
func BenchmarkObserve(b *testing.B) {
	each(b, func(b *testing.B, o *otel.Observer) {
		observed(b, o)
		b.ReportAllocs()
		for b.Loop() {
			o.AcquireDone(oltp, partition.AcquireEvent{Pool: workload.OLTP, Waited: 400})
			o.Released(partition.ReleaseEvent{Pool: workload.OLTP, Held: 20e6})
		}
	})
}
