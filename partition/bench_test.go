package partition_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Each benchmark runs on a driver that does nothing, as plain database/sql and as partitioned, so that the difference
// is what the partition costs: tag, gate, statement timeout and guard all on. "partitioned" is what a server gets that
// keeps the statement timeout itself (PostgreSQL, MariaDB), with the guard behind it; "guard-alone" is every other one,
// where the guard has to be exact. "plain-withtimeout" is what a caller would write by hand for one of the timeouts.
// `make bench` prints the differences.

func plainNull() *sql.DB { return sql.OpenDB(fakedb.Null()) }

func partitionedNull(b testing.TB, opts ...partition.Option) *sql.DB {
	watched := partition.WithPool(workload.OLTP, partition.PoolConfig{LeakAfter: time.Second, MaxHold: time.Minute})
	opts = append([]partition.Option{partition.WithLogger(quiet), asPostgres, watched}, opts...)
	db, err := partition.OpenDB(fakedb.Null(), opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

// both runs the twins of a benchmark.
func both(b *testing.B, ctx context.Context, run func(*testing.B, *sql.DB, context.Context)) {
	b.Run("plain", func(b *testing.B) { run(b, plainNull(), ctx) })
	b.Run("partitioned", func(b *testing.B) { run(b, partitionedNull(b), ctx) })
	b.Run("guard-alone", func(b *testing.B) {
		run(b, partitionedNull(b, partition.WithDialect(stmttimeout.ClientOnly())), ctx)
	})
}

func tagged(ctx context.Context) context.Context { return workload.With(ctx, workload.OLTP) }

func BenchmarkExec(b *testing.B) {
	ctx := tagged(context.Background())
	both(b, ctx, fakedb.BenchExec)
}

// BenchmarkExecCancellable is the same under the context of a request, which can end.
func BenchmarkExecCancellable(b *testing.B) {
	ctx, cancel := context.WithCancel(tagged(context.Background()))
	defer cancel()
	both(b, ctx, fakedb.BenchExec)
	b.Run("plain-withtimeout", func(b *testing.B) {
		db := plainNull()
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			if _, err := db.ExecContext(ctx, "UPDATE accounts SET seen = now() WHERE id = 1"); err != nil {
				b.Fatal(err)
			}
			cancel()
		}
	})
}

func BenchmarkQueryRow(b *testing.B) {
	ctx := tagged(context.Background())
	both(b, ctx, fakedb.BenchQueryRow)
}

// BenchmarkQueryRowParallel is QueryRow on every processor at once, so that connections go from one to another.
func BenchmarkQueryRowParallel(b *testing.B) {
	both(b, tagged(context.Background()), fakedb.BenchQueryRowParallel)
}

func BenchmarkQueryRowCancellable(b *testing.B) {
	ctx, cancel := context.WithCancel(tagged(context.Background()))
	defer cancel()
	both(b, ctx, fakedb.BenchQueryRow)
}

func prepared(b *testing.B, db *sql.DB, ctx context.Context) {
	stmt, err := db.PrepareContext(ctx, "UPDATE accounts SET seen = now() WHERE id = 1")
	if err != nil {
		b.Fatal(err)
	}
	defer stmt.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stmt.ExecContext(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStmtExec(b *testing.B) {
	ctx := tagged(context.Background())
	both(b, ctx, prepared)
}

func transaction(b *testing.B, db *sql.DB, ctx context.Context) {
	b.ReportAllocs()
	for b.Loop() {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			b.Fatal(err)
		}
		tx.ExecContext(ctx, "UPDATE accounts SET seen = now() WHERE id = 1")
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTx(b *testing.B) {
	ctx := tagged(context.Background())
	both(b, ctx, transaction)
}

// BenchmarkAlternating changes the workload from call to call, the worst case for the cache of virtual connections.
func BenchmarkAlternating(b *testing.B) {
	one, two := tagged(context.Background()), workload.With(context.Background(), workload.Reporting)
	run := func(b *testing.B, db *sql.DB, _ context.Context) {
		b.ReportAllocs()
		for b.Loop() {
			db.ExecContext(one, "SELECT 1")
			db.ExecContext(two, "SELECT 1")
		}
	}
	both(b, context.Background(), run)
}

func BenchmarkRejectionWhenFull(b *testing.B) {
	db := partitionedNull(b, partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, MaxWaiting: partition.NoQueue}))
	ctx := tagged(context.Background())
	conn, err := db.Conn(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := db.ExecContext(ctx, "SELECT 1"); !errors.Is(err, partition.ErrQueueFull) {
			b.Fatal(err)
		}
	}
}

// BenchmarkInnerDB is the checkout of a connection from a *sql.DB: what a pool would cost that kept its connections in
// one.
func BenchmarkInnerDB(b *testing.B) {
	db, ctx := plainNull(), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		conn, err := db.Conn(ctx)
		if err != nil {
			b.Fatal(err)
		}
		var inner sqldriver.Conn
		conn.Raw(func(c any) error { inner = c.(sqldriver.Conn); return nil })
		_ = inner
		conn.Close()
	}
}

// BenchmarkWait is how long 64 callers wait for 8 connections that each holds for a millisecond. database/sql serves
// its waiters at random, so that some wait many times as long as most.
func BenchmarkWait(b *testing.B) {
	const callers, conns, rounds = 64, 8, 160
	run := func(b *testing.B, db *sql.DB) {
		for b.Loop() {
			waits := make([]time.Duration, 0, callers*rounds)
			var mu sync.Mutex
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for range rounds {
						began := time.Now()
						conn, err := db.Conn(context.Background())
						wait := time.Since(began)
						if err != nil {
							b.Error(err)
							return
						}
						time.Sleep(time.Millisecond)
						conn.Close()
						mu.Lock()
						waits = append(waits, wait)
						mu.Unlock()
					}
				})
			}
			all.Wait()
			slices.Sort(waits)
			p50, p999 := waits[len(waits)/2], waits[len(waits)*999/1000]
			b.ReportMetric(float64(p50.Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(p999.Microseconds())/1000, "p99.9-ms")
			b.ReportMetric(float64(p999)/float64(p50), "p99.9/p50")
		}
	}
	b.Run("plain", func(b *testing.B) {
		db := plainNull()
		defer db.Close()
		db.SetMaxOpenConns(conns)
		db.SetMaxIdleConns(conns)
		run(b, db)
	})
	b.Run("partitioned", func(b *testing.B) {
		run(b, partitionedNull(b, partition.WithPool(workload.OLTP, partition.PoolConfig{
			MaxOpenConns: conns, MaxWaiting: callers, AcquireTimeout: time.Minute})))
	})
}
