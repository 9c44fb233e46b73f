package partition_test

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// In real time: in a bubble the clock is so far from the process's beginning that nothing overflows.
func TestHugeDurationsAreNoShortOnesAndDisableNoGuard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]partition.PoolConfig{
		"StatementTimeout": {StatementTimeout: math.MaxInt64},
		"AcquireTimeout":   {AcquireTimeout: math.MaxInt64},
		"DialTimeout":      {AcquireTimeout: partition.NoWait, DialTimeout: math.MaxInt64},
		"ConnMaxIdleTime":  {ConnMaxIdleTime: math.MaxInt64},
		"ConnMaxLifetime":  {ConnMaxLifetime: math.MaxInt64},
		"With":             {StatementTimeout: partition.NoTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, c))
			r.mustExec(stmttimeout.With(oltp, math.MaxInt64), "sleep 1ms")
			for range 5 {
				r.mustExec(oltp, "ok")
			}
			if n := r.server.Stats().Dials; n != 1 {
				t.Errorf("%d dials for 6 statements one after another", n)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := r.db.ExecContext(stmttimeout.With(oltp, 20*ms), "hang")
				ended <- err
			}()
			select {
			case err := <-ended:
				if !errors.Is(err, stmttimeout.ErrExceeded) {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Error("the guard is off")
				r.server.KillAll()
			}
		})
	}
}

// As some libraries have it for "no deadline".
func TestDeadlineThatIsFarAwayIsNoneThatHasPassed(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{partition.NoTimeout, time.Minute} {
		r := setup(t, fakedb.New(), limited(limit))
		ctx, cancel := context.WithDeadline(oltp, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
		defer cancel()
		for range 3 {
			r.mustExec(ctx, "sleep 5ms")
		}
	}
}

func TestHugeSizesAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := partition.OpenDB(fakedb.New().Connector(), size(workload.OLTP, math.MaxInt)); err == nil {
		t.Error("by Open: accepted")
	}
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithBudget(20))
		if err := r.pool(workload.OLTP).Resize(math.MaxInt); err == nil {
			t.Error("by Resize: accepted")
		}
	})
}

func TestShrinkingAndGrowingAgainKeepsTheCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 4, AcquireTimeout: time.Minute}))
		r.server.On(fakedb.CloseConn, fakedb.Delay(time.Second))
		r.fill(workload.OLTP, 4)
		p := r.pool(workload.OLTP)
		p.Resize(1)
		p.Resize(4)
		r.take(workload.OLTP, 4)()
		if n := r.server.Stats().PeakOpen; n > 4 {
			t.Errorf("%d connections on the server, the cap is 4", n)
		}
	})
}

// In real time, too: a setter that races with its being undone.
func TestCapThatIsSetAgainAndAgainHangsNobody(t *testing.T) {
	t.Parallel()
	r := setup(t, fakedb.New(fakedb.WithoutLog()))
	stop := make(chan struct{})
	var setter, callers sync.WaitGroup
	setter.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				r.db.SetMaxOpenConns(1)
			}
		}
	})
	for range 4 {
		callers.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(oltp, 100*ms)
				r.db.ExecContext(ctx, "ok")
				cancel()
			}
		})
	}
	time.AfterFunc(300*ms, func() { close(stop) })
	setter.Wait()
	callers.Wait()
}

func TestHealthAfterCloseIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.db.Close()
		if err := r.reg.Health(t.Context()); err == nil {
			t.Error("a closed registry is healthy")
		}
		if err := r.reg.Warm(t.Context()); err == nil {
			t.Error("a closed registry can be warmed")
		}
	})
}

func TestPanicsUnderWarmAndHealthAreErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.server.On(fakedb.Dial, func(context.Context, fakedb.Call) error { panic("dialler") })
		if err := r.reg.Warm(t.Context()); err == nil || !contains(err.Error(), "panicked") {
			t.Errorf("Warm: %v", err)
		}
		if err := r.reg.Health(t.Context()); err == nil || !contains(err.Error(), "panicked") {
			t.Errorf("Health: %v", err)
		}
		r.server.On(fakedb.Dial, nil)
		r.server.On(fakedb.Ping, func(context.Context, fakedb.Call) error { panic("pinger") })
		if err := r.reg.Warm(t.Context()); err == nil || !contains(err.Error(), "panicked") {
			t.Errorf("Warm: %v", err)
		}
		synctest.Wait()
		r.idle()
	})
}

func TestDialTimeoutIsNotTheCallersDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{AcquireTimeout: time.Second, DialTimeout: 50 * ms}))
		r.server.On(fakedb.Dial, fakedb.Delay(time.Hour))
		_, err := r.db.ExecContext(oltp, "ok")
		if e := rejection(t, err); errors.Is(err, context.DeadlineExceeded) || !e.Dialing || e.Waited != 50*ms {
			t.Errorf("%v", err)
		}
	})
}

// Never three times the acquire timeout, however slowly a connection turns out to be bad.
func TestSlowBadConnectionsCostOneAcquireTimeout(t *testing.T) {
	t.Parallel()
	bad := func(ctx context.Context, c fakedb.Call) error {
		fakedb.Delay(80*ms)(ctx, c)
		return sqldriver.ErrBadConn
	}
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.server.On(fakedb.Dial, bad)
		began := time.Now()
		if _, err := r.db.ExecContext(oltp, "ok"); err == nil || time.Since(began) > 100*ms {
			t.Errorf("bad dials: %v after %v", err, time.Since(began))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.fill(workload.OLTP, 4)
		r.server.On(fakedb.Reset, bad)
		r.server.On(fakedb.Dial, fakedb.Delay(80*ms))
		began := time.Now()
		if _, err := r.db.ExecContext(oltp, "ok"); !errors.Is(err, partition.ErrAcquireTimeout) || time.Since(began) > 100*ms {
			t.Errorf("bad resets, then a dial: %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Second)
		r.server.On(fakedb.Reset, nil)
		r.mustExec(oltp, "ok")
		r.idle()
	})
}
