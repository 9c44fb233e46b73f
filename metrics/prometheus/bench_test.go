package prometheus_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Each benchmark of a call is one of package partition's, on a driver that does nothing: as plain database/sql, as partitioned,
// and with metrics on. `make bench` prints the differences. What the partition adds to plain may be 1.3 times as much with
// metrics as the bound without them.

// enforcing is the dialect of a server that keeps the statement timeout itself.
type enforcing struct{ stmttimeout.Dialect }

func (enforcing) Setup(_ context.Context, _ stmttimeout.Session, want stmttimeout.Settings) (stmttimeout.Applied, error) {
	return stmttimeout.Applied{
		Enforcement:      stmttimeout.EnforcedBySession,
		StatementTimeout: want.StatementTimeout,
		Restore:          []string{"set"},
	}, nil
}

func open(b testing.TB, c sqldriver.Connector, opts ...partition.Option) *sql.DB {
	opts = append([]partition.Option{
		partition.WithLogger(quiet), partition.WithDialect(enforcing{stmttimeout.Postgres()}),
		partition.WithPool(workload.OLTP, partition.PoolConfig{LeakAfter: time.Second, MaxHold: time.Minute}),
	}, opts...)
	db, err := partition.OpenDB(c, opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

func three(b *testing.B, run func(*testing.B, *sql.DB, context.Context)) {
	b.Run("plain", func(b *testing.B) { run(b, sql.OpenDB(fakedb.Null()), oltp) })
	b.Run("partitioned", func(b *testing.B) { run(b, open(b, fakedb.Null()), oltp) })
	b.Run("with-metrics", func(b *testing.B) {
		run(b, open(b, fakedb.Null(), partition.WithObserver(prometheus.NewObserver())), oltp)
	})
}

func BenchmarkExecWithPrometheus(b *testing.B) {
	three(b, fakedb.BenchExec)
}

func BenchmarkQueryRowWithPrometheus(b *testing.B) {
	three(b, fakedb.BenchQueryRow)
}

// BenchmarkScrape is the answer of promhttp's handler for 100 pools, each of which has a caller whose statements take a
// millisecond. The twin is 100 plain handles with client_golang's collector for them, which has 9 series of each.
func BenchmarkScrape(b *testing.B) {
	const statement = time.Millisecond
	b.Run("plain", func(b *testing.B) {
		metrics, work := prom.NewRegistry(), traffic{}
		for i := range pools {
			db := sql.OpenDB(fakedb.NullSleep(statement))
			defer db.Close()
			metrics.MustRegister(collectors.NewDBStatsCollector(db, fmt.Sprintf("tenant-%02d", i)))
			work.add(db, context.Background())
		}
		scrape(b, metrics, work)
	})
	b.Run("partitioned", func(b *testing.B) {
		db, metrics := many(b, fakedb.NullSleep(statement))
		work := traffic{}
		for i := range pools {
			work.add(db, in(tenant(i)))
		}
		scrape(b, metrics, work)
	})
}

// BenchmarkScrapeFlatOut is the same beside one caller that never rests, and goes from pool to pool.
func BenchmarkScrapeFlatOut(b *testing.B) {
	db, metrics := many(b, fakedb.Null())
	var contexts []context.Context
	for i := range pools {
		contexts = append(contexts, in(tenant(i)))
	}
	work := traffic{}
	work.add(db, contexts...)
	scrape(b, metrics, work)
}

const pools = 100

func tenant(i int) workload.Name { return workload.Name(fmt.Sprintf("tenant-%02d", i)) }

// many opens a handle of as many pools, with a collector for them.
func many(b *testing.B, c sqldriver.Connector) (*sql.DB, *prom.Registry) {
	observer := prometheus.NewObserver()
	opts := []partition.Option{partition.WithObserver(observer), partition.WithDefault(tenant(0))}
	for _, standard := range []workload.Name{workload.OLTP, workload.Reporting, workload.Batch, workload.Admin} {
		opts = append(opts, partition.WithoutPool(standard))
	}
	for i := range pools {
		opts = append(opts, partition.WithPool(tenant(i), partition.PoolConfig{MaxOpenConns: 2}))
	}
	db := open(b, c, opts...)
	registry, _ := partition.RegistryOf(db)
	metrics := prom.NewRegistry()
	metrics.MustRegister(prometheus.NewCollector(registry, observer))
	return db, metrics
}

// traffic is callers, each of whom does one statement after the other, under its contexts by turns.
type traffic []func(until context.Context)

func (t *traffic) add(db *sql.DB, contexts ...context.Context) {
	*t = append(*t, func(until context.Context) {
		for i := 0; until.Err() == nil; i++ {
			db.ExecContext(contexts[i%len(contexts)], "UPDATE accounts SET seen = now()")
		}
	})
}

func scrape(b *testing.B, metrics *prom.Registry, work traffic) {
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, caller := range work {
		all.Go(func() { caller(ctx) })
	}
	handler, request := promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}), httptest.NewRequest("GET", "/metrics", nil)
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(nobody{}, request)
	}
	stop()
	all.Wait()
}

// nobody reads what is written, as the network would.
type nobody struct{}

func (nobody) Header() http.Header         { return http.Header{} }
func (nobody) Write(b []byte) (int, error) { return len(b), nil }
func (nobody) WriteHeader(int)             {}
