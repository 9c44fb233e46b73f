package partition_test

import (
	"context"
	"database/sql"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// 98 callers find their connection idle, two wait for 40 ms and 80 ms.
func TestTimesAreTheQuantilesOfWaitsAndHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1}))
		if got := r.pool(workload.OLTP).Times(); got != (partition.Times{}) {
			t.Errorf("before anybody came: %+v", got)
		}
		for range 97 {
			r.db.ExecContext(oltp, "sleep 10ms")
		}
		for range 3 {
			go r.db.ExecContext(oltp, "sleep 40ms")
		}
		time.Sleep(time.Second)
		got := r.pool(workload.OLTP).Times()
		atMost := func(d, exact time.Duration) bool { return d >= exact && d <= exact+exact/8 }
		if got.WaitP50 > time.Microsecond*2 || !atMost(got.WaitP99, 40*ms) || !atMost(got.HoldP50, 10*ms) || !atMost(got.HoldP99, 40*ms) {
			t.Errorf("%+v", got)
		}
	})
}

// told is an observer that counts what it is told.
type told struct {
	mu           sync.Mutex
	waits, holds []time.Duration
}

func (o *told) AcquireDone(_ context.Context, e partition.AcquireEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Err == nil {
		o.waits = append(o.waits, e.Waited)
	}
}

func (o *told) Released(e partition.ReleaseEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds = append(o.holds, e.Held)
}

// counted is a histogram as far as others see it.
type counted struct {
	count  uint64
	sum    time.Duration
	atMost []uint64
}

var limits = []time.Duration{0, time.Microsecond, ms, 25 * ms, 40 * ms, time.Second, 900 * time.Second}

func read(h partition.Histogram) counted { return counted{h.Count, h.Sum, h.AtMost(limits)} }

func count(all []time.Duration) counted {
	c := counted{uint64(len(all)), 0, make([]uint64, len(limits))}
	for _, d := range all {
		c.sum += d
		for i, limit := range limits {
			if d <= limit {
				c.atMost[i]++
			}
		}
	}
	c.atMost[0] = 0 // no bucket is so short
	return c
}

func TestHistogramsAreWhatAnObserverWouldHaveCounted(t *testing.T) {
	t.Parallel()
	for _, mode := range []partition.Mode{partition.Enforce, partition.Observe} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, server := &told{}, fakedb.New()
				r := setup(t, server, partition.WithMode(mode), partition.WithObserver(o), partition.WithoutPool(workload.Reporting),
					partition.WithoutPool(workload.Batch), partition.WithoutPool(workload.Admin), partition.WithBudget(2),
					partition.WithPool(workload.OLTP, partition.PoolConfig{
						AcquireTimeout: 100 * ms, StatementTimeout: 2 * time.Second, ConnMaxIdleTime: time.Minute}))
				r.tolerates = closedUnder
				if mode == partition.Enforce { // else it is the carrier that is warmed, and no workload
					if err := r.reg.Warm(oltp); err != nil {
						t.Fatal(err)
					}
				}
				for _, text := range []string{"ok", "sleep 25ms", "sleep 40ms", "sleep 1s", "hang"} {
					ctx, cancel := context.WithTimeout(oltp, time.Minute)
					for range 4 { // two at once; who is last waits, and may be rejected
						go r.db.ExecContext(ctx, text)
					}
					time.Sleep(30 * ms)
					r.db.ExecContext(ctx, "ok")
					time.Sleep(2 * time.Minute) // and what is idle is closed
					cancel()
				}
				server.On(fakedb.Dial, fakedb.Fail(sql.ErrConnDone))
				r.db.ExecContext(oltp, "ok")
				synctest.Wait()
				waits, holds := read(r.pool(workload.OLTP).Waits()), read(r.pool(workload.OLTP).Holds())
				if want := count(o.waits); !reflect.DeepEqual(waits, want) || want.sum == 0 || want.atMost[1] == 0 {
					t.Errorf("waits %v, the observer has %v", waits, want)
				}
				if want := count(o.holds); !reflect.DeepEqual(holds, want) || want.sum == 0 {
					t.Errorf("holds %v, the observer has %v", holds, want)
				}
			})
		})
	}
}

// To a system of metrics a counter that becomes less has begun anew, and all that it ever counted has come at once.
func TestHistogramsNeverBecomeLess(t *testing.T) {
	t.Parallel()
	for _, mode := range []partition.Mode{partition.Enforce, partition.Observe} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := fakedb.New()
				server.On(fakedb.Dial, fakedb.Delay(3*ms))
				r := setup(t, server, partition.WithMode(mode), partition.WithBudget(8), partition.WithPool(workload.OLTP,
					partition.PoolConfig{MaxOpenConns: 2, MaxIdleConns: 1, MaxWaiting: 9, AcquireTimeout: time.Minute}))
				for i := range 3 {
					go func() {
						for n := range 20 {
							r.db.ExecContext(oltp, "sleep "+(time.Duration((7*i+11*n)%13)*ms).String())
							time.Sleep(time.Duration(5*i*n%17) * ms)
						}
					}()
				}
				p := r.pool(workload.OLTP)
				var last [2][]uint64
				for range 3000 {
					time.Sleep(ms / 4)
					for i, h := range []partition.Histogram{p.Waits(), p.Holds()} {
						now := inBuckets(h)
						for b := range last[i] {
							if now[b] < last[i][b] {
								t.Fatalf("up to %v: %d, and %d before", limits[b], now[b], last[i][b])
							}
						}
						last[i] = now
					}
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

func inBuckets(h partition.Histogram) []uint64 {
	buckets, below := h.AtMost(limits), uint64(0)
	for b, n := range buckets {
		buckets[b], below = n-below, n
	}
	return buckets
}

func TestHistogramBoundIsTheNearest(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{
		time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond, ms, 2500 * time.Microsecond, 5 * ms, 7500 * time.Microsecond,
		10 * ms, 25 * ms, 50 * ms, 75 * ms, 100 * ms, 250 * ms, 500 * ms, time.Second, 2500 * ms, 5 * time.Second, 10 * time.Second,
		15 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour,
	} {
		if got := partition.HistogramBound(d); got != d {
			t.Errorf("%v counts as %v", d, got)
		}
	}
	for d, want := range map[time.Duration]time.Duration{
		-time.Second: time.Microsecond, 0: time.Microsecond, 123 * ms: 120 * ms, 128 * ms: 135 * ms, 256 * ms: 250 * ms,
		24 * time.Hour: 10000 * time.Second,
	} {
		if got := partition.HistogramBound(d); got != want {
			t.Errorf("%v counts as %v, want %v", d, got, want)
		}
	}
}

func TestQuantileOutOfRangeIsThatOfTheEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.mustExec(oltp, "sleep 10ms")
		r.mustExec(oltp, "sleep 20ms")
		holds := r.pool(workload.OLTP).Holds()
		if a, b := holds.Quantile(-1), holds.Quantile(2); a != 10*ms || b != 20*ms {
			t.Errorf("%v and %v", a, b)
		}
	})
}
