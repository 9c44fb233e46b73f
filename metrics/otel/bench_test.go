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

// BenchmarkObservedExec is a call as plain database/sql, as partitioned, and with metrics on, without and with the
// histograms, that the SDK records.
func BenchmarkObservedExec(b *testing.B) {
	newObserver := func(b *testing.B, opts ...otel.Option) *otel.Observer {
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
		o, err := otel.NewObserver(append(opts, otel.WithMeterProvider(provider))...)
		if err != nil {
			b.Fatal(err)
		}
		return o
	}
	b.Run("plain", func(b *testing.B) { exec(b, sql.OpenDB(fakedb.Null()), oltp) })
	b.Run("partitioned", func(b *testing.B) { exec(b, observed(b, nil), oltp) })
	b.Run("without-histograms", func(b *testing.B) { exec(b, observed(b, newObserver(b, otel.WithoutHistograms())), oltp) })
	b.Run("observed", func(b *testing.B) { exec(b, observed(b, newObserver(b)), oltp) })
}
