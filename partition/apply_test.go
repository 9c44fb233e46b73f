package partition_test

import (
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

type pools = map[workload.Name]partition.PoolConfig

// configs returns the effective configuration of every pool.
func configs(reg *partition.Registry) pools {
	all := make(pools)
	for _, p := range reg.Pools() {
		all[p.Name()] = p.Config()
	}
	return all
}

func equal(a, b pools) bool {
	for name := range a {
		if a[name] != b[name] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestAppliedConfigIsWhatARestartWithItWouldGive(t *testing.T) {
	t.Parallel()
	first := partition.Config{Budget: 30, Pools: pools{
		workload.Reporting: {MaxOpenConns: 5, StatementTimeout: time.Minute, MaxHold: time.Hour},
		workload.OLTP:      {MaxWaiting: 50, LockTimeout: time.Second, ReadOnly: true},
	}}
	with := func(c partition.Config) []partition.Option {
		return []partition.Option{
			partition.WithBudget(20),
			partition.WithPool(workload.Batch, partition.PoolConfig{MaxIdleConns: 1}),
			partition.WithConfig(c),
			partition.WithConfig(partition.Config{}),
			partition.WithPool(workload.Reporting, partition.PoolConfig{AcquireTimeout: 70 * ms}),
		}
	}
	for name, next := range map[string]partition.Config{
		"nothing":     {},
		"the same":    first,
		"less":        {Pools: pools{workload.Reporting: {MaxOpenConns: 5}}},
		"other sizes": {Budget: 12, Pools: pools{workload.OLTP: {MaxOpenConns: 3}}},
		"under the code": {Pools: pools{workload.Reporting: {AcquireTimeout: time.Second}, workload.Batch: {
			MaxIdleConns: 2, MaxWaiting: partition.NoQueue, AcquireTimeout: partition.NoWait, StatementTimeout: partition.NoTimeout,
			DialTimeout: time.Second, ConnMaxLifetime: time.Hour, ConnMaxIdleTime: partition.NoTimeout, LeakAfter: time.Second,
			MaxHold: time.Minute, LeakStacks: true, IdleInTransactionTimeout: time.Second, LockTimeout: time.Second, ReadOnly: true,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live, restarted := setup(t, fakedb.New(), with(first)...), setup(t, fakedb.New(), with(next)...)
				live.pool(workload.Admin).Resize(1)
				if err := live.reg.Apply(next); err != nil {
					t.Fatal(err)
				}
				if got, want := configs(live.reg), configs(restarted.reg); !equal(got, want) {
					t.Errorf("applied:   %v\nrestarted: %v", got, want)
				}
			})
		})
	}
}

func TestRefusedApplyChangesNothingAndNamesEverything(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	for _, c := range []struct {
		config partition.Config
		names  []string
	}{
		{partition.Config{Default: workload.Batch}, []string{"Default"}},
		{partition.Config{RequireTag: true}, []string{"RequireTag"}},
		{partition.Config{Pooler: "transaction"}, []string{"Pooler"}},
		{partition.Config{Pooler: "session"}, []string{"Pooler"}},
		{partition.Config{Budget: 3}, []string{"budget of 3"}},
		{partition.Config{Budget: -1}, []string{"budget", "-1"}},
		{partition.Config{Pools: pools{workload.OLTP: {MaxOpenConns: 18}}}, []string{"budget of 20"}},
		{partition.Config{Pools: pools{workload.OLTP: {AcquireTimeout: -5}}}, []string{`"oltp"`, "AcquireTimeout"}},
		{partition.Config{
			Default: workload.Batch,
			Pools: pools{
				"new":          {MaxOpenConns: 1},
				workload.OLTP:  {MaxOpenConns: 2, MaxWaiting: 1, DSN: "postgres://u:" + password + "@replica/db"},
				workload.Admin: {MaxOpenConns: -1},
				workload.Batch: {MaxWaiting: -7},
			},
		}, []string{"Default", `pool "etl" (missing)`, `pool "new" (new)`, `pool "oltp" DSN`, `pool "admin": MaxOpenConns`, `pool "batch": MaxWaiting`}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), partition.WithBudget(20),
				partition.WithConfig(partition.Config{Pools: pools{"etl": {MaxOpenConns: 3}}}))
			if c.config.Pools == nil {
				c.config.Pools = pools{}
			}
			if c.config.Pools["new"].MaxOpenConns == 0 {
				c.config.Pools["etl"] = partition.PoolConfig{MaxOpenConns: 3}
			}
			before := configs(r.reg)
			err := r.reg.Apply(c.config)
			if err == nil {
				t.Fatalf("%+v was accepted", c.config)
			}
			for _, name := range c.names {
				if !contains(err.Error(), name) {
					t.Errorf("%v does not name %s", err, name)
				}
			}
			if contains(err.Error(), password) {
				t.Errorf("%v shows the password", err)
			}
			if after := configs(r.reg); !equal(before, after) {
				t.Errorf("before: %v\nafter:  %v", before, after)
			}
			if err := r.pool(workload.OLTP).Resize(11); err == nil {
				t.Error("the budget was changed")
			}
		})
	}
}

func TestApplyOnAClosedHandleIsRefused(t *testing.T) {
	t.Parallel()
	r := setup(t, fakedb.New())
	r.db.Close()
	if err := r.reg.Apply(partition.Config{}); err == nil || err.Error() != r.db.Ping().Error() {
		t.Errorf("got %v", err)
	}
}

// apply changes one pool, and leaves the rest at their defaults.
func (r *rig) apply(name workload.Name, c partition.PoolConfig) {
	r.Helper()
	if err := r.reg.Apply(partition.Config{Pools: pools{name: c}}); err != nil {
		r.Fatal(err)
	}
}

// goExec runs a statement that waits for its connection.
func (r *rig) goExec() <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := r.db.ExecContext(oltp, "ok")
		done <- err
	}()
	synctest.Wait()
	return done
}

func TestAppliedBoundsHoldForCallersWhoComeAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithConfig(partition.Config{Pools: pools{
			workload.OLTP: {MaxOpenConns: 1, MaxWaiting: 2, AcquireTimeout: 100 * ms},
		}}))
		giveBack := r.take(workload.OLTP, 1)
		defer giveBack()
		began, first := time.Now(), r.goExec()
		r.apply(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, MaxWaiting: 2, AcquireTimeout: 10 * ms})
		second := r.goExec()
		if err := <-second; !errors.Is(err, partition.ErrAcquireTimeout) || time.Since(began) != 10*ms {
			t.Errorf("under the new timeout: %v after %v", err, time.Since(began))
		}
		r.apply(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, MaxWaiting: 1, AcquireTimeout: 10 * ms})
		if err := <-r.goExec(); !errors.Is(err, partition.ErrQueueFull) {
			t.Errorf("under the new bound: %v", err)
		}
		if err := <-first; !errors.Is(err, partition.ErrAcquireTimeout) || time.Since(began) != 100*ms {
			t.Errorf("who waited already: %v after %v", err, time.Since(began))
		}
	})
}

func TestApplyThatGrowsAPoolServesItsWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithBudget(20), partition.WithConfig(partition.Config{Pools: pools{
			workload.OLTP: {MaxOpenConns: 1}, workload.Reporting: {MaxOpenConns: 10},
		}}))
		defer r.take(workload.OLTP, 1)()
		r.fill(workload.Reporting, 10)
		waiting := r.goExec()
		err := r.reg.Apply(partition.Config{Pools: pools{
			workload.OLTP: {MaxOpenConns: 15}, workload.Reporting: {MaxOpenConns: 2},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if s := r.stats(workload.Reporting); s.Open != 2 || s.MaxOpenConns != 2 {
			t.Errorf("the other pool did not shrink: %+v", s)
		}
	})
}

func TestAppliedLifetimesAndHoldsCountWhatIsOpenAlready(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 2))
		r.fill(workload.OLTP, 2)
		defer r.take(workload.OLTP, 1)()
		time.Sleep(time.Minute)
		r.apply(workload.OLTP, partition.PoolConfig{ConnMaxIdleTime: time.Second, LeakAfter: time.Second, MaxHold: 2 * time.Minute})
		time.Sleep(time.Second)
		if s := r.stats(workload.OLTP); s.Open != 1 || s.Leaked != 1 || s.Reclaimed != 0 {
			t.Errorf("at once: %+v", s)
		}
		time.Sleep(time.Minute)
		if s := r.stats(workload.OLTP); s.Open != 0 || s.Reclaimed != 1 {
			t.Errorf("a minute later: %+v", s)
		}
	})
}

func TestAppliesAndResizesTogetherKeepToTheBudgetUnderLoad(t *testing.T) {
	t.Parallel()
	const budget = 12
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, postgresLike("", fakedb.WithoutLog()), asPostgres, partition.WithBudget(budget))
		end := time.Now().Add(3 * time.Second)
		var all sync.WaitGroup
		for i := range 20 {
			name := []workload.Name{workload.OLTP, workload.Reporting}[i%2]
			all.Go(func() {
				for time.Now().Before(end) {
					_, err := r.db.ExecContext(in(name), "sleep 3ms")
					if err != nil && !errors.Is(err, partition.ErrRejected) {
						t.Error(err)
					}
					time.Sleep(ms)
				}
			})
		}
		for i := range 4 {
			all.Go(func() {
				for time.Now().Before(end) {
					n := 1 + rand.IntN(budget)
					switch i {
					case 0:
						r.pool(workload.Reporting).Resize(n)
					case 1:
						r.reg.Plan()
					default:
						r.reg.Apply(partition.Config{Pools: pools{
							workload.OLTP:      {MaxOpenConns: n, MaxWaiting: n, StatementTimeout: time.Duration(n) * time.Second},
							workload.Reporting: {MaxOpenConns: 1 + rand.IntN(budget), AcquireTimeout: time.Duration(n) * ms},
						}})
					}
					time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
				}
			})
		}
		all.Go(func() {
			for time.Now().Before(end) {
				synctest.Wait() // nobody is changing anything
				sum := 0
				for _, p := range r.reg.Pools() {
					sum += p.Stats().MaxOpenConns
				}
				if sum > budget {
					t.Errorf("the sizes add up to %d", sum)
				}
				time.Sleep(ms)
			}
		})
		all.Wait()
		time.Sleep(time.Second)
		r.apply(workload.OLTP, partition.PoolConfig{StatementTimeout: 4321 * ms})
		synctest.Wait()
		r.idle()
		for range r.pool(workload.OLTP).Config().MaxOpenConns {
			conn, err := r.db.Conn(oltp)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			var limit string
			if err := conn.QueryRowContext(oltp, "show statement_timeout").Scan(&limit); err != nil || limit != "4.321s" {
				t.Errorf("a session has the limit %s, %v", limit, err)
			}
		}
		if s := r.server.Stats(); s.Open > budget {
			t.Errorf("%d connections are open after it, the budget is %d", s.Open, budget)
		}
	})
}

func TestApplyReachesTheHandleOfAPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		db := r.pool(workload.Batch).DB()
		r.apply(workload.Batch, partition.PoolConfig{MaxOpenConns: 6, MaxWaiting: partition.NoQueue})
		conns := make([]*sql.Conn, 6)
		for i := range conns {
			var err error
			if conns[i], err = db.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Conn(t.Context()); !errors.Is(err, partition.ErrQueueFull) {
			t.Errorf("a seventh: %v", err)
		}
		for _, c := range conns {
			c.Close()
		}
		if n := db.Stats().Idle; n != 6 {
			t.Errorf("the handle keeps %d virtual connections", n)
		}
	})
}
