package partition_test

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestWarmDialsOneConnectionPerPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.server.On(fakedb.Dial, fakedb.Delay(time.Second))
		if err := r.reg.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, p := range r.reg.Pools() {
			if s := p.Stats(); s.Open != 1 || s.Idle != 1 {
				t.Errorf("%s: %+v", p.Name(), s)
			}
		}
		r.idle()
		r.mustExec(oltp, "ok")
		if n := r.server.Stats().Dials; n != 4 {
			t.Errorf("%d dials", n)
		}
	})
}

func TestWarmNamesThePoolsThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		r := setup(t, fakedb.New())
		r.server.On(fakedb.Dial, fakedb.Fail(refused))
		err := r.reg.Warm(t.Context())
		if !errors.Is(err, refused) {
			t.Fatal(err)
		}
		for _, name := range []string{"oltp", "reporting", "batch", "admin"} {
			if !contains(err.Error(), `"`+name+`"`) {
				t.Errorf("%v does not name %s", err, name)
			}
		}
	})
}

func TestHealthPassesTheGatesAndSeesASickServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		defer r.take(workload.OLTP, 10)()
		r.pool(workload.Batch).Pause()
		if err := r.reg.Health(t.Context()); err != nil {
			t.Errorf("a saturated pool is not a sick service: %v", err)
		}
		r.server.On(fakedb.Ping, fakedb.Fail(errors.New("sick")))
		if err := r.reg.Health(t.Context()); err == nil {
			t.Error("a sick server went unnoticed")
		}
		r.server.On(fakedb.Ping, fakedb.Delay(time.Hour))
		began := time.Now()
		if err := r.reg.Health(context.Background()); err == nil || time.Since(began) != 5*time.Second {
			t.Errorf("a hanging server: %v after %v", err, time.Since(began))
		}
		release := make(chan struct{})
		defer close(release)
		r.server.On(fakedb.Ping, fakedb.Stall(release))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := r.reg.Health(ctx); err == nil || time.Since(began) != time.Second {
			t.Errorf("a driver that ignores its context: %v after %v", err, time.Since(began))
		}
	})
}

// database/sql dials for those who wait in its own queue, under a context that never ends.
func TestHealthRecoversFromADialThatHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		if err := r.reg.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.server.On(fakedb.Ping, func(context.Context, fakedb.Call) error {
			time.Sleep(ms) // in which another queues
			return sqldriver.ErrBadConn
		})
		r.server.On(fakedb.Dial, fakedb.Delay(time.Hour))
		var checks sync.WaitGroup
		for range 2 {
			checks.Go(func() { r.reg.Health(t.Context()) })
		}
		checks.Wait()
		r.server.On(fakedb.Ping, nil)
		r.server.On(fakedb.Dial, nil)
		time.Sleep(10 * time.Second)
		if err := r.reg.Health(t.Context()); err != nil {
			t.Errorf("the server is well again: %v", err)
		}
	})
}

func TestPoolsWithTheirOwnServerGoThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		replica := fakedb.New()
		r := setup(t, fakedb.New(), partition.WithPoolConnector(workload.Reporting, replica.Connector()))
		r.mustExec(reporting, "ok")
		r.mustExec(oltp, "ok")
		if a, b := r.server.Stats().Dials, replica.Stats().Dials; a != 1 || b != 1 {
			t.Errorf("dials: main %d, replica %d", a, b)
		}
		replica.On(fakedb.Ping, fakedb.Fail(errors.New("replica is down")))
		if err := r.reg.Health(t.Context()); err == nil {
			t.Error("Health did not ask the replica")
		}
	})
}
