package prometheus_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Each benchmark of a call runs on a driver that does nothing: as plain database/sql, as partitioned, and with metrics
// on. What the partition adds to plain may be 1.3 times as much with metrics as the bound without them.

func open(b testing.TB, opts ...partition.Option) *sql.DB {
	opts = append([]partition.Option{partition.WithLogger(quiet), partition.WithDialect(stmttimeout.ClientOnly())}, opts...)
	db, err := partition.OpenDB(fakedb.Null(), opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

func three(b *testing.B, run func(*testing.B, *sql.DB, context.Context)) {
	ctx := workload.With(context.Background(), workload.OLTP)
	b.Run("plain", func(b *testing.B) { run(b, sql.OpenDB(fakedb.Null()), ctx) })
	b.Run("partitioned", func(b *testing.B) { run(b, open(b), ctx) })
	b.Run("observed", func(b *testing.B) { run(b, open(b, partition.WithObserver(prometheus.NewObserver())), ctx) })
}

func BenchmarkObservedExec(b *testing.B) {
	three(b, func(b *testing.B, db *sql.DB, ctx context.Context) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := db.ExecContext(ctx, "UPDATE accounts SET seen = now() WHERE id = 1"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkObservedQueryRow(b *testing.B) {
	three(b, func(b *testing.B, db *sql.DB, ctx context.Context) {
		b.ReportAllocs()
		for b.Loop() {
			var v int64
			if err := db.QueryRowContext(ctx, "SELECT id FROM accounts WHERE id = 1").Scan(&v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkObserve is what the observer itself does for one call.
func BenchmarkObserve(b *testing.B) {
	o := prometheus.NewObserver()
	b.ReportAllocs()
	for b.Loop() {
		o.AcquireDone(context.Background(), partition.AcquireEvent{Pool: workload.OLTP, Waited: 400})
		o.Released(partition.ReleaseEvent{Pool: workload.OLTP, Held: 20e6})
	}
}

// BenchmarkScrape is a scrape of 100 pools, all of them at work: collecting alone, and the handler that writes the text
// as well.
func BenchmarkScrape(b *testing.B) {
	observer := prometheus.NewObserver()
	opts := []partition.Option{partition.WithObserver(observer)}
	var names []workload.Name
	for i := range 96 { // with the four standard ones
		names = append(names, workload.Name(fmt.Sprintf("tenant-%02d", i)))
		opts = append(opts, partition.WithPool(names[i], partition.PoolConfig{MaxOpenConns: 2}))
	}
	db := open(b, opts...)
	registry, _ := partition.RegistryOf(db)
	metrics := prom.NewRegistry()
	metrics.MustRegister(prometheus.NewCollector(registry, observer))

	stop := work(db, append(names, workload.OLTP, workload.Reporting, workload.Batch, workload.Admin))
	defer stop()
	b.Run("gather", func(b *testing.B) {
		for b.Loop() {
			if _, err := metrics.Gather(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("http", func(b *testing.B) {
		handler, request := promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}), httptest.NewRequest("GET", "/metrics", nil)
		for b.Loop() {
			handler.ServeHTTP(nobody{}, request)
		}
	})
}

// work keeps a caller busy in all pools, one after the other.
func work(db *sql.DB, names []workload.Name) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			db.ExecContext(workload.With(ctx, names[i%len(names)]), "UPDATE accounts SET seen = now()")
		}
	})
	return func() { cancel(); all.Wait() }
}

// nobody reads what is written, as the network would.
type nobody struct{}

func (nobody) Header() http.Header         { return http.Header{} }
func (nobody) Write(b []byte) (int, error) { return len(b), nil }
func (nobody) WriteHeader(int)             {}
