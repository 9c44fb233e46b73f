package integration

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// benchConns is the size of both pools.
const benchConns = 8

// BenchmarkQueries is queries per second against PostgreSQL on loopback, each way beside plain database/sql under the same
// kind of context. Partitioned is to reach 0.97 of plain: benchstat compares queries/s, and "of-plain" is
// the same figure from turns of some 50 ms each, which a busy machine disturbs alike.
func BenchmarkQueries(b *testing.B) {
	cancellable, cancel := context.WithCancel(oltp)
	defer cancel()
	r := setup(b, pgx, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: benchConns, MaxWaiting: 1000}))
	plain := r.plain()
	plain.SetMaxOpenConns(benchConns)
	plain.SetMaxIdleConns(benchConns)
	for _, kind := range []struct {
		name string
		ctx  context.Context
	}{{"background", oltp}, {"cancellable", cancellable}} {
		for _, tw := range []twin{{"plain", plain}, {"partitioned", r.db}} {
			b.Run(kind.name+"/"+tw.name, func(b *testing.B) { queries(b, kind.ctx, tw.db) })
		}
		for _, callers := range []int{1, benchConns} {
			b.Run(fmt.Sprintf("%s/ratio-%d", kind.name, callers), func(b *testing.B) { ratio(b, kind.ctx, plain, r.db, callers) })
		}
	}
}

// queries keeps benchConns connections busy.
func queries(b *testing.B, ctx context.Context, db *sql.DB) {
	_, giveBack := checkOut(b, ctx, db, benchConns) // all are open
	giveBack()
	b.SetParallelism(benchConns / 2)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var n int
			if err := db.QueryRowContext(ctx, "SELECT $1::int", 1).Scan(&n); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "queries/s")
}

// ratio lets both take turns, b.N queries each in all, and reports the median of partitioned to plain: by one caller, and
// by as many as there are connections, which on a small machine leaves no processor idle, so that all that either costs
// on the client is missing on the server.
func ratio(b *testing.B, ctx context.Context, plain, partitioned *sql.DB, callers int) {
	const turn = 1000
	var ratios []float64
	for done := 0; done < b.N; done += turn {
		n := min(turn, b.N-done)
		a, p, a2 := timed(b, ctx, plain, n, callers), timed(b, ctx, partitioned, n, callers), timed(b, ctx, plain, n, callers)
		ratios = append(ratios, (a+a2).Seconds()/2/p.Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "of-plain")
}

// timed is how long n queries take.
func timed(b *testing.B, ctx context.Context, db *sql.DB, n, callers int) time.Duration {
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	began := time.Now()
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				var one int
				if err := db.QueryRowContext(ctx, "SELECT $1::int", 1).Scan(&one); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	return time.Since(began)
}
