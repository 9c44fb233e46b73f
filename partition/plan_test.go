package partition_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// stream starts a statement of the length every so often, for some time, and waits for the last one.
func (r *rig) stream(all *sync.WaitGroup, name workload.Name, every, hold, span time.Duration) {
	all.Go(func() {
		var each sync.WaitGroup
		for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(every) {
			each.Go(func() { r.db.ExecContext(in(name), "sleep "+hold.String()) })
		}
		each.Wait()
	})
}

func (r *rig) has(p partition.PoolPlan, flags ...partition.Flag) {
	r.Helper()
	if !slices.Equal(p.Flags, flags) {
		r.Errorf("pool %s has the flags %v, want %v: %+v", p.Workload, p.Flags, flags, p)
	}
}

func TestPlanIsLittlesLawAtTheNinetyNinthPercentile(t *testing.T) {
	t.Parallel()
	for _, mode := range []partition.Mode{partition.Observe, partition.Enforce} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), partition.WithMode(mode), partition.WithBudget(100))
			var all sync.WaitGroup
			r.stream(&all, workload.OLTP, 10*ms, 47*ms, 2*time.Minute)
			all.Wait()
			p := r.planOf(workload.OLTP)
			// 100 a second, 47 ms each, which the histogram takes for 48 at most 53, half as much again
			if e := p.Evidence; e.Held != 12000 || e.Arrivals != 12000 || e.HoldP50 < 47*ms || e.HoldP99 > 53*ms || e.PeakRate < 99 || e.PeakRate > 102 {
				t.Errorf("%s: %+v", mode, e)
			}
			if p.Wants < 8 || p.Wants > 8 {
				t.Errorf("%s: it wants %d, at most 5 of which were ever in use", mode, p.Wants)
			}
			r.has(p, partition.FlagMoreThanNeeded)
		})
	}
}

// The starvation that the package is for, played in fake time: what was watched yields a plan under which every login is
// served.
func TestPlanOfAStarvedDayServesEveryLoginOnceItIsEnforced(t *testing.T) {
	t.Parallel()
	day := func(opts ...partition.Option) (plan partition.Plan, logins, failed, reports int) {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), append([]partition.Option{partition.WithBudget(20)}, opts...)...)
			ctx, stop := within(reporting, 90*time.Second)
			defer stop()
			var all sync.WaitGroup
			var mu sync.Mutex
			for range 40 {
				all.Go(func() {
					for ctx.Err() == nil {
						_, err := r.db.ExecContext(ctx, "sleep 2s")
						mu.Lock()
						if err == nil {
							reports++
						}
						mu.Unlock()
						time.Sleep(50 * ms)
					}
				})
			}
			for ctx.Err() == nil {
				logins++
				all.Go(func() {
					login, cancel := within(oltp, time.Second)
					defer cancel()
					if _, err := r.db.ExecContext(login, "sleep 3ms"); err != nil {
						mu.Lock()
						failed++
						mu.Unlock()
					}
				})
				time.Sleep(10 * ms)
			}
			plan = r.reg.Plan()
			all.Wait()
		})
		return plan, logins, failed, reports
	}
	plan, logins, failed, _ := day(observed)
	if failed < logins/2 {
		t.Errorf("in the shared pool %d of %d logins failed: they were not starved", failed, logins)
	}
	sum := 0
	for _, p := range plan.Pools {
		sum += p.Size
	}
	if sum != 20 {
		t.Errorf("the plan is for %d connections of 20:\n%v", sum, plan)
	}
	if _, logins, failed, reports := day(partition.WithConfig(plan.Config())); failed != 0 || reports == 0 {
		t.Errorf("enforced, %d of %d logins failed, and %d reports were served:\n%v", failed, logins, reports, plan)
	}
}

func TestPlanServesTheShortestHoldsFirstAndSaysWhoIsSqueezed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed, partition.WithBudget(20), partition.WithoutPool(workload.Admin))
		var all sync.WaitGroup
		r.stream(&all, workload.OLTP, 20*ms, 100*ms, 2*time.Minute)                 // 5 at once: wants 9
		r.stream(&all, workload.Batch, 1*time.Second, 4*time.Second, 2*time.Minute) // 4 at once: wants 6 or 7
		r.stream(&all, workload.Reporting, 500*ms, 10*time.Second, 2*time.Minute)   // 20 at once, behind the others
		all.Wait()
		plan := r.reg.Plan()
		batch, oltp, reports := plan.Pools[0], plan.Pools[1], plan.Pools[2]
		if oltp.Size != oltp.Wants || batch.Size != batch.Wants || reports.Size != 20-oltp.Size-batch.Size || reports.Wants < 20 {
			t.Errorf("\n%v", plan)
		}
		if !slices.Contains(reports.Flags, partition.FlagSqueezed) || slices.Contains(oltp.Flags, partition.FlagSqueezed) {
			t.Errorf("\n%v", plan)
		}
	})
}

func TestPlanGivesWhatIsOverToTheDefaultPoolAndOneToThoseNeverUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed, partition.WithBudget(20))
		var all sync.WaitGroup
		r.stream(&all, workload.OLTP, 100*ms, 10*ms, 2*time.Minute)
		r.stream(&all, workload.Reporting, 500*ms, ms, 2*time.Minute)
		all.Wait()
		for name, want := range map[workload.Name]int{workload.OLTP: 16, workload.Reporting: 2, workload.Batch: 1, workload.Admin: 1} {
			if p := r.planOf(name); p.Size != want {
				t.Errorf("%s gets %d, want %d", name, p.Size, want)
			}
		}
		r.has(r.planOf(workload.Admin), partition.FlagNeverUsed)
	})
}

func TestPlanOfARegistryThatNobodyUsedKeepsTheSizes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithBudget(20))
		for _, p := range r.reg.Plan().Pools {
			if p.Size != p.MaxOpenConns {
				t.Errorf("%+v", p)
			}
			r.has(p, partition.FlagNeverUsed)
		}
	})
}

// Otherwise each would want what a pool in use has at least, at the cost of those that are.
func TestPlanTakesAPoolThatWasOnlyWarmedForOneThatIsNeverUsed(t *testing.T) {
	t.Parallel()
	for _, mode := range []partition.Mode{partition.Observe, partition.Enforce} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), partition.WithMode(mode), partition.WithBudget(8))
			r.server.On(fakedb.Dial, fakedb.Fail(errors.New("the server is still starting")))
			if err := r.reg.Warm(t.Context()); err == nil {
				t.Error("warm without a server")
			}
			r.server.On(fakedb.Dial, nil)
			if err := r.reg.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.mustExec(oltp, "ok")
			for _, name := range []workload.Name{workload.Reporting, workload.Batch, workload.Admin} {
				p := r.planOf(name)
				if p.Size != 1 || p.Evidence.Arrivals != 0 {
					t.Errorf("%s: %+v", mode, p)
				}
				r.has(p, partition.FlagNeverUsed)
			}
			if n := r.planOf(workload.OLTP).Evidence.Arrivals; n != 1 {
				t.Errorf("%s: %d arrivals of one", mode, n)
			}
		})
	}
}

func TestPlanSeesABurstOfLongJobsAsThatManyAndNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed, partition.WithBudget(40))
		for range 3 {
			for _, err := range r.sleepers(in(workload.Batch), 4, 15*time.Minute)() {
				if err != nil {
					t.Error(err)
				}
			}
			time.Sleep(24 * time.Hour)
		}
		if p := r.planOf(workload.Batch); p.Wants != 6 || p.Evidence.PeakDemand != 4 {
			t.Errorf("%+v", p)
		}
	})
}

func TestPlanCountsConnectionsThatAreHeldForGood(t *testing.T) {
	t.Parallel()
	for _, mode := range []partition.Mode{partition.Observe, partition.Enforce} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), partition.WithMode(mode), partition.WithBudget(40))
			defer r.take(workload.OLTP, 3)()
			if p := r.planOf(workload.OLTP); p.Wants != 3 {
				t.Errorf("%s: while none is back it wants %d", mode, p.Wants)
			}
			time.Sleep(time.Hour)
			r.mustExec(oltp, "sleep 10ms")
			if p := r.planOf(workload.OLTP); p.Wants != 5 {
				t.Errorf("%s: it wants %d, 3 of which are held for good", mode, p.Wants)
			}
		})
	}
}

func TestPlanFlagsAPoolThatIsTooSmallForHealthyTrafficButNotOneThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tight := partition.PoolConfig{MaxOpenConns: 2, MaxWaiting: 1, AcquireTimeout: 10 * ms}
		r := setup(t, fakedb.New(), observed, partition.WithBudget(100), partition.WithPool(workload.OLTP, tight), partition.WithPool("sick", tight))
		var all sync.WaitGroup
		r.stream(&all, workload.OLTP, 10*ms, 50*ms, 2*time.Minute)
		r.stream(&all, "sick", 100*ms, ms, 2*time.Minute)
		all.Wait()
		hung := r.sleepers(in("sick"), 2, 20*time.Second)
		time.Sleep(time.Second)
		others := r.sleepers(in("sick"), 30, ms)
		time.Sleep(time.Second)
		if p := r.planOf("sick"); p.Evidence.RejectedQueueFull+p.Evidence.RejectedTimeout < 20 || slices.Contains(p.Flags, partition.FlagTooSmall) {
			t.Errorf("%+v", p)
		}
		if p := r.planOf(workload.OLTP); !slices.Contains(p.Flags, partition.FlagTooSmall) || !slices.Contains(p.Flags, partition.FlagAlwaysFull) {
			t.Errorf("%+v", p)
		}
		hung()
		others()
	})
}

// Who is turned away comes, too; and who came long after the last give-back did not come within ten seconds.
func TestPeakRateIsThatOfArrivalsHoweverLongConnectionsAreHeld(t *testing.T) {
	t.Parallel()
	for _, mode := range []partition.Mode{partition.Observe, partition.Enforce} {
		for _, conns := range []int{1, 500} {
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, fakedb.New(fakedb.WithoutLog()), partition.WithMode(mode), partition.WithPool(workload.OLTP,
					partition.PoolConfig{MaxOpenConns: conns, MaxWaiting: partition.NoQueue, StatementTimeout: partition.NoTimeout}))
				giveBack := r.take(workload.OLTP, 1)
				var all sync.WaitGroup
				for range 600 { // five a second, for two minutes
					all.Go(func() { r.db.ExecContext(oltp, "sleep 1m") })
					time.Sleep(200 * ms)
				}
				giveBack()
				all.Wait()
				if e := r.planOf(workload.OLTP).Evidence; e.PeakRate < 4.5 || e.PeakRate > 5.5 || e.Arrivals != 601 {
					t.Errorf("%s, pool of %d: five a second are %v, %d arrivals of 601", mode, conns, e.PeakRate, e.Arrivals)
				}
			})
		}
	}
}

func TestPlanFlagsTwoKindsOfWorkInOnePool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed, partition.WithBudget(100))
		var all sync.WaitGroup
		r.stream(&all, workload.OLTP, 100*ms, ms, 2*time.Minute)
		r.stream(&all, workload.OLTP, 3*time.Second, 2*time.Second, 2*time.Minute)
		all.Wait()
		if p := r.planOf(workload.OLTP); !slices.Contains(p.Flags, partition.FlagMixed) {
			t.Errorf("%+v", p)
		}
	})
}

func TestPlanIsReadByPeopleAndMachines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed, partition.WithBudget(20))
		r.mustExec(in("unknown"), "sleep 50ms")
		plan := r.reg.Plan()
		text := plan.String()
		for _, part := range []string{"mode observe, for 50ms since ", "budget 20", "would wait", "never used", "1 with a tag that no pool has"} {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in\n%s", part, text)
			}
		}
		data, err := json.Marshal(plan)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Mode, Window string
			Pools        []struct {
				Workload string
				Size     int
				Flags    []string
				Evidence struct {
					Held    int
					HoldP99 string `json:"hold_p99"`
				}
			}
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		p := got.Pools[2]
		if got.Mode != "observe" || got.Window != "50ms" || p.Workload != "oltp" || p.Evidence.Held != 1 || p.Evidence.HoldP99 != "50ms" {
			t.Errorf("%s", data)
		}
		config, err := json.Marshal(plan.Config())
		if want := fmt.Sprintf(`"oltp":{"max_open_conns":%d}`, p.Size); err != nil || !strings.Contains(string(config), want) {
			t.Errorf("%s has no %s", config, want)
		}
		if _, err := partition.LoadConfig(strings.NewReader(string(config))); err != nil {
			t.Errorf("the plan's configuration cannot be read: %v", err)
		}
	})
}
