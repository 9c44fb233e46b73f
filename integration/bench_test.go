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

// BenchmarkQueries is queries per second against PostgreSQL on loopback, beside plain database/sql under the same kind of
// context. Partitioned is to reach 0.97 of plain.
func BenchmarkQueries(b *testing.B) {
	cancellable, cancel := context.WithCancel(oltp)
	defer cancel()
	for _, kind := range []struct {
		name string
		ctx  context.Context
	}{{"background", oltp}, {"cancellable", cancellable}} {
		plain, partitioned, _ := twins(b)
		b.Run(kind.name+"/plain", func(b *testing.B) { queries(b, kind.ctx, plain) })
		b.Run(kind.name+"/partitioned", func(b *testing.B) { queries(b, kind.ctx, partitioned) })
		for _, callers := range []int{1, benchConns} {
			b.Run(fmt.Sprintf("%s/ratio-%d", kind.name, callers), func(b *testing.B) { ratio(b, kind.ctx, callers) })
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

// ratio lets both take turns, b.N queries each in all, and reports how many queries partitioned does in the time of plain's:
// with one caller, and with as many as there are connections, which on a small machine leaves no processor idle, so that
// all that either costs on the client is missing on the server. Where the system puts a handle's server processes makes
// more of a difference than what is measured, so the handles are new in every round, and the rounds are averaged; "control"
// is the same figure for a second plain handle, which shows what is noise.
// orders are all the orders in which three can take a turn: who comes after whom makes a difference of some percent.
var orders = [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}, {1, 0, 2}}

func ratio(b *testing.B, ctx context.Context, callers int) {
	const turns, turn = 12, 700
	var ours, control, rounds float64
	for done := 0; done < b.N; done += turns * turn {
		first, partitioned, second := twins(b)
		handles := []*sql.DB{first, partitioned, second}
		for _, db := range handles {
			timed(b, ctx, db, turn, callers) // dials
		}
		var took [3]time.Duration
		for i := range turns {
			for _, j := range orders[i%len(orders)] {
				took[j] += timed(b, ctx, handles[j], turn, callers)
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
