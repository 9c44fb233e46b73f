package partition_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// crowd has n callers run statements in a pool until end.
func (r *rig) crowd(all *sync.WaitGroup, n int, end time.Time) {
	for range n {
		all.Go(func() {
			for time.Now().Before(end) {
				r.db.ExecContext(oltp, "sleep 3ms")
				time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
			}
		})
	}
}

// sizes is what a pool's size may be taken for: the one that holds, and in the instant of a change the one before, too.
type sizes struct {
	mu        sync.Mutex
	last, now int
	since     time.Time
}

func (s *sizes) set(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := time.Now(); t != s.since {
		s.last, s.since = s.now, t
	}
	s.last, s.now = max(s.last, n), n
}

func (s *sizes) largest() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Equal(s.since) {
		return s.last
	}
	return s.now
}

// (Replacing a bad connection is another matter: who holds it goes on, in a pool that has shrunk meanwhile, too.)
func TestNothingIsDialedPastTheSizeWhileThatChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const start = 4
		r := setup(t, fakedb.New(fakedb.WithoutLog()), partition.WithPool(workload.OLTP, partition.PoolConfig{
			MaxOpenConns: start, MaxWaiting: 100, AcquireTimeout: time.Second,
		}))
		size := &sizes{now: start}
		r.server.On(fakedb.CloseConn, fakedb.Delay(2*ms))
		r.server.On(fakedb.Dial, func(ctx context.Context, c fakedb.Call) error {
			if s, most := r.server.Stats(), size.largest(); s.Dials-s.Closed > most {
				t.Errorf("a dial makes %d connections, the size is %d", s.Dials-s.Closed, most)
			}
			return fakedb.Delay(ms)(ctx, c)
		})
		end := time.Now().Add(3 * time.Second)
		var all sync.WaitGroup
		r.crowd(&all, 12, end)
		for time.Now().Before(end) {
			time.Sleep(time.Duration(1+rand.IntN(4000)) * time.Microsecond)
			n := 1 + rand.IntN(8)
			size.set(n)
			if err := r.pool(workload.OLTP).Resize(n); err != nil {
				t.Fatal(err)
			}
		}
		all.Wait()
		time.Sleep(time.Second)
		r.idle()
	})
}

type closes struct {
	mu sync.Mutex
	n  map[partition.CloseReason]int
}

func (c *closes) ConnOpened(partition.ConnEvent) {}
func (c *closes) ConnClosed(e partition.ConnEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[e.Reason]++
}

func TestGrowingClosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closed := &closes{n: make(map[partition.CloseReason]int)}
		r := setup(t, fakedb.New(fakedb.WithoutLog()), partition.WithObserver(closed), partition.WithPool(workload.OLTP, partition.PoolConfig{
			MaxOpenConns: 2, MaxWaiting: 100, AcquireTimeout: time.Minute,
		}))
		end := time.Now().Add(time.Second)
		var all sync.WaitGroup
		r.crowd(&all, 50, end)
		for n := 2; time.Now().Before(end); n++ {
			r.pool(workload.OLTP).Resize(2 + n/20)
			time.Sleep(ms)
		}
		all.Wait()
		synctest.Wait()
		closed.mu.Lock()
		defer closed.mu.Unlock()
		if n := closed.n[partition.CloseSurplus]; n > 0 {
			t.Errorf("%d connections were closed as surplus", n)
		}
	})
}
