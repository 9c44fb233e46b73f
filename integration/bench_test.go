package integration

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// benchConns is the size of both pools.
const benchConns = 8

// kindOf is the context of one caller. What can be cancelled is each caller's own, as requests have it.
type kindOf func() (context.Context, context.CancelFunc)

func background() (context.Context, context.CancelFunc)  { return oltp, func() {} }
func cancellable() (context.Context, context.CancelFunc) { return context.WithCancel(oltp) }

// BenchmarkQueries is queries per second against PostgreSQL on loopback, beside plain database/sql under the same kind of
// context. Partitioned is to reach 0.97 of plain.
func BenchmarkQueries(b *testing.B) {
	for name, kind := range map[string]kindOf{"background": background, "cancellable": cancellable} {
		plain, partitioned, _ := twins(b)
		b.Run(name+"/plain", func(b *testing.B) { queries(b, kind, plain) })
		b.Run(name+"/partitioned", func(b *testing.B) { queries(b, kind, partitioned) })
		for _, callers := range []int{1, benchConns, 2 * benchConns} {
			b.Run(fmt.Sprintf("%s/ratio-%d", name, callers), func(b *testing.B) { ratio(b, kind, callers) })
		}
	}
}

// twins are handles of one size: two plain ones and a partitioned one.
func twins(b *testing.B) (plain, partitioned, control *sql.DB) {
	r := setup(b, pgx, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: benchConns, MaxWaiting: 1000}))
	plain, control = r.plain(), r.plain()
	for _, db := range []*sql.DB{plain, control} {
		db.SetMaxOpenConns(benchConns)
		db.SetMaxIdleConns(benchConns)
	}
	return plain, r.db, control
}

// queries keeps benchConns connections busy.
func queries(b *testing.B, kind kindOf, db *sql.DB) {
	_, giveBack := checkOut(b, oltp, db, benchConns) // all are open
	giveBack()
	b.SetParallelism(benchConns / 2)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		ctx, cancel := kind()
		defer cancel()
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

// orders are all the orders in which three can take a turn: who comes after whom makes a difference of some percent.
var orders = [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}, {1, 0, 2}}

// ratio lets both take turns, b.N queries each in all, and reports how many queries partitioned does in the time of plain's:
// with one caller, and with as many as there are connections, which on a small machine leaves no processor idle, so that
// all that either costs on the client is missing on the server; and with twice as many, of whom half wait. Where the system puts a handle's server processes makes
// more of a difference than what is measured, so the handles are new in every round, and the rounds are averaged; "control"
// is the same figure for a second plain handle, which shows what is noise.
func ratio(b *testing.B, kind kindOf, callers int) {
	const turns, turn = 12, 700
	var ours, control, rounds float64
	for done := 0; done < b.N; done += turns * turn {
		first, partitioned, second := twins(b)
		handles := []*sql.DB{first, partitioned, second}
		for _, db := range handles {
			timed(b, kind, db, turn, callers) // dials
		}
		var took [3]time.Duration
		for i := range turns {
			for _, j := range orders[i%len(orders)] {
				took[j] += timed(b, kind, handles[j], turn, callers)
			}
		}
		plain := (took[0] + took[2]).Seconds() / 2
		ours += math.Log(plain / took[1].Seconds())
		control += math.Log(took[0].Seconds() / took[2].Seconds())
		rounds++
		for _, db := range handles {
			db.Close()
		}
	}
	b.ReportMetric(math.Exp(ours/rounds), "of-plain")
	b.ReportMetric(math.Exp(control/rounds), "control")
}

// timed is how long n queries take.
func timed(b *testing.B, kind kindOf, db *sql.DB, n, callers int) time.Duration {
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	began := time.Now()
	for range callers {
		all.Go(func() {
			ctx, cancel := kind()
			defer cancel()
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
