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
			b.Run(fmt.Sprintf("%s/ratio-%d", name, callers), func(b *testing.B) { ratio(b, kind, callers, partitionedBetween) })
		}
	}
	for _, spin := range []time.Duration{100 * time.Nanosecond, 400 * time.Nanosecond} {
		b.Run(fmt.Sprintf("plain-and-%v/ratio-%d", spin, benchConns), func(b *testing.B) {
			ratio(b, background, benchConns, slowerBetween(spin))
		})
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

// handle is one that takes turns with others.
type handle struct {
	*sql.DB
	spin time.Duration // that its callers burn before each query
}

// handlesOf makes two plain handles, and between them one that is compared with them.
type handlesOf func(*testing.B) [3]handle

func partitionedBetween(b *testing.B) [3]handle {
	plain, partitioned, control := twins(b)
	return [3]handle{{DB: plain}, {DB: partitioned}, {DB: control}}
}

// slowerBetween is the ruler: how much of plain's queries per second a plain handle loses to so much time of the processor.
func slowerBetween(spin time.Duration) handlesOf {
	return func(b *testing.B) [3]handle {
		plain, _, control := twins(b)
		slower, _, _ := twins(b)
		return [3]handle{{DB: plain}, {slower, spin}, {DB: control}}
	}
}

// ratio lets them take turns, b.N queries each in all, and reports how many queries the middle one does in the time of plain's:
// with one caller; with as many as there are connections, which on a small machine leaves no processor idle, so that all that
// a handle costs on the client is missing on the server; and with twice as many, half of whom wait. Where the system puts a
// handle's server processes makes more of a difference than what is measured, so the handles are new in every round, and the
// rounds are averaged; "control" is the same figure for the other plain handle, which shows what is noise.
func ratio(b *testing.B, kind kindOf, callers int, open handlesOf) {
	const turns, turn = 12, 700
	var middle, control, rounds float64
	for done := 0; done < b.N; done += turns * turn {
		handles := open(b)
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
		middle += math.Log(plain / took[1].Seconds())
		control += math.Log(took[0].Seconds() / took[2].Seconds())
		rounds++
		for _, db := range handles {
			db.Close()
		}
	}
	b.ReportMetric(math.Exp(middle/rounds), "of-plain")
	b.ReportMetric(math.Exp(control/rounds), "control")
}

// timed is how long n queries take.
func timed(b *testing.B, kind kindOf, db handle, n, callers int) time.Duration {
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	began := time.Now()
	for range callers {
		all.Go(func() {
			ctx, cancel := kind()
			defer cancel()
			for left.Add(-1) >= 0 {
				burn(db.spin)
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

func burn(d time.Duration) {
	if d == 0 {
		return
	}
	for began := time.Now(); time.Since(began) < d; {
	}
}
