package integration

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// watchedFor is how long each of the two runs is.
const watchedFor = 6 * time.Second

// A day on which reports starve logins, watched; then the same day with what the plan says enforced. It measures time, so
// it does not run beside the other tests.
func TestPlanOfAStarvedDayServesEveryLogin(t *testing.T) {
	for _, tg := range []target{pgx, mariadb} {
		t.Run(tg.name, func(t *testing.T) {
			options := []partition.Option{
				partition.WithBudget(20),
				partition.WithPool(workload.OLTP, partition.PoolConfig{AcquireTimeout: 5 * time.Second, MaxWaiting: 500}),
				partition.WithPool(workload.Reporting, partition.PoolConfig{AcquireTimeout: 500 * ms}),
			}
			day := starve(setup(t, tg, append(options, partition.WithMode(partition.Observe))...), time.Second)
			t.Logf("observed: %d of %d logins were served, %d reports\n%v", day.served, day.logins, day.reports, day.plan)
			if day.served > day.logins/2 {
				t.Errorf("in the shared pool %d of %d logins were served: they were not starved", day.served, day.logins)
			}
			if day.refused > 0 {
				t.Errorf("%d reports failed although nothing is enforced", day.refused)
			}
			checkPlan(t, day.plan)

			day = starve(setup(t, tg, append(options, partition.WithConfig(day.plan.Config()))...), 5*time.Second)
			t.Logf("enforced: %d of %d logins were served, %d reports\n%v", day.served, day.logins, day.reports, day.plan)
			if day.served != day.logins || day.reports == 0 {
				t.Errorf("of %d logins %d were served, and %d reports", day.logins, day.served, day.reports)
			}
		})
	}
}

// checkPlan looks whether the plan is one that can be followed, and says what is the matter.
func checkPlan(t *testing.T, plan partition.Plan) {
	t.Helper()
	sum := 0
	for _, p := range plan.Pools {
		sum += p.Size
		squeezed, full := slices.Contains(p.Flags, partition.FlagSqueezed), slices.Contains(p.Flags, partition.FlagAlwaysFull)
		if reports := p.Workload == workload.Reporting; squeezed != reports || full != reports {
			t.Errorf("pool %s has the flags %v", p.Workload, p.Flags)
		}
		if p.Workload == workload.OLTP && p.Size < p.Wants {
			t.Errorf("logins want %d connections and get %d", p.Wants, p.Size)
		}
		if used := p.Workload == workload.OLTP || p.Workload == workload.Reporting; used == slices.Contains(p.Flags, partition.FlagNeverUsed) {
			t.Errorf("pool %s has the flags %v", p.Workload, p.Flags)
		}
	}
	if sum > 20 {
		t.Errorf("the plan is for %d connections of 20", sum)
	}
}

// starved is what became of a day.
type starved struct {
	logins, served, reports, refused int64
	plan                             partition.Plan
}

// starve plays 40 analysts on statements of 2 s beside 100 logins a second that are given up after patience.
func starve(r *rig, patience time.Duration) (day starved) {
	report := "SELECT pg_sleep(2)"
	if r.target.name == mariadb.name {
		report = "SELECT SLEEP(2)"
	}
	r.exec(oltp, "SELECT 1")
	var served, reports, refused atomic.Int64
	ctx, stop := context.WithTimeout(reporting, watchedFor)
	defer stop()
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := r.db.ExecContext(ctx, report); err == nil {
					reports.Add(1)
				} else if ctx.Err() == nil {
					refused.Add(1)
					time.Sleep(50 * ms)
				}
			}
		})
	}
	tick := time.NewTicker(10 * ms)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		day.logins++
		all.Go(func() {
			login, cancel := context.WithTimeout(oltp, patience)
			defer cancel()
			if _, err := r.db.ExecContext(login, "SELECT 1"); err == nil {
				served.Add(1)
			} else if r.reg.Mode() == partition.Enforce {
				r.Errorf("login: %v", err)
			}
		})
	}
	day.plan = r.reg.Plan()
	all.Wait()
	day.served, day.reports, day.refused = served.Load(), reports.Load(), refused.Load()
	return day
}
