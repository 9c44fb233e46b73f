package partition_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

var observed = partition.WithMode(partition.Observe)

// planOf is one pool's part of the registry's plan.
func (r *rig) planOf(name workload.Name) partition.PoolPlan {
	r.Helper()
	for _, p := range r.reg.Plan().Pools {
		if p.Workload == name {
			return p
		}
	}
	r.Fatalf("no plan for pool %q", name)
	return partition.PoolPlan{}
}

// sleepers start n statements of this length at once, and say what became of them.
func (r *rig) sleepers(ctx context.Context, n int, d time.Duration) (wait func() []error) {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _, errs[i] = r.db.ExecContext(ctx, fmt.Sprintf("sleep %v", d)) })
	}
	return func() []error { all.Wait(); return errs }
}

func TestObserveSharesOnePoolOfTheBudgetsSizeAndRejectsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed, partition.WithBudget(6))
		began := time.Now()
		wait := r.sleepers(reporting, 30, 2*time.Second)
		synctest.Wait()
		if n := r.server.Stats().PeakRunning; n != 6 {
			t.Errorf("%d ran at once on a budget of 6", n)
		}
		login, cancel := context.WithTimeout(oltp, time.Minute)
		defer cancel()
		if _, err := r.db.ExecContext(login, "ok"); err != nil {
			t.Errorf("login: %v", err)
		}
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("the login waited %v behind 30 reports, 6 at a time", waited)
		}
		if err := errors.Join(wait()...); err != nil {
			t.Errorf("reports: %v", err)
		}
		r.idle()
		if s := r.stats(workload.OLTP); s.Waited != 1 || s.WaitTime != 10*time.Second || s.Held != 1 || s.HoldTime != 0 || s.Acquired != 1 {
			t.Errorf("oltp: %+v", s)
		}
		if s := r.stats(workload.Reporting); s.PeakInUse != 6 || s.Held != 30 || s.HoldTime != time.Minute || s.RejectedQueueFull+s.RejectedTimeout != 0 {
			t.Errorf("reporting: %+v", s)
		}
	})
}

// The same traffic meets a wall that is watched, on a shared pool with room for everybody, and one that is enforced. What
// enforcing is said to do is what it does.
func TestWatchedWallSaysWhatEnforcingDoes(t *testing.T) {
	t.Parallel()
	for i := range 30 {
		pool := partition.PoolConfig{MaxOpenConns: 1 + rand.IntN(4), MaxWaiting: 1 + rand.IntN(5), AcquireTimeout: time.Duration(5+rand.IntN(60)) * ms}
		seed := uint64(i)
		var watched, enforced partition.Evidence
		for mode, e := range map[partition.Mode]*partition.Evidence{partition.Observe: &watched, partition.Enforce: &enforced} {
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, fakedb.New(), partition.WithMode(mode), partition.WithPool(workload.OLTP, pool),
					size(workload.Batch, 500)) // whose share of the shared pool nobody uses
				random := rand.New(rand.NewPCG(seed, 1))
				var all sync.WaitGroup
				for range 300 {
					time.Sleep(time.Duration(1 + random.IntN(int(20*ms)))) // no two things happen at once
					hold := time.Duration(1 + random.IntN(int(60*ms)))
					all.Go(func() { r.db.ExecContext(oltp, "sleep "+hold.String()) })
				}
				all.Wait()
				*e = r.planOf(workload.OLTP).Evidence
			})
		}
		if watched.Waited != enforced.Waited || watched.RejectedQueueFull != enforced.RejectedQueueFull || watched.RejectedTimeout != enforced.RejectedTimeout {
			t.Errorf("%v: watched %+v, enforced %+v", pool, watched, enforced)
		}
		if watched.Arrivals != 300 || enforced.Arrivals != 300 || enforced.Held+enforced.RejectedQueueFull+enforced.RejectedTimeout != 300 {
			t.Errorf("%v: not all 300 are accounted for: watched %+v, enforced %+v", pool, watched, enforced)
		}
	}
}

func TestPoolsWithTheSameDSNShareOneServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakedb.New()
		db, err := partition.Open(server.Register(t.Name()), "main", observed, partition.WithLogger(quiet),
			partition.WithPool(workload.Reporting, partition.PoolConfig{MaxOpenConns: 2, DSN: "replica"}),
			partition.WithPool(workload.Batch, partition.PoolConfig{MaxOpenConns: 3, DSN: "replica"}))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ctx, cancel := context.WithTimeout(reporting, time.Minute)
		defer cancel()
		for i := range 5 {
			conn, err := db.Conn(ctx)
			if err != nil {
				t.Fatalf("connection %d of the five that both have together: %v", i+1, err)
			}
			defer conn.Close()
		}
		reg, _ := partition.RegistryOf(db)
		if err := reg.Health(t.Context()); err != nil || server.Stats().Dials != 7 {
			t.Errorf("%d dials, five and one for the health of each server: %v", server.Stats().Dials, err)
		}
	})
}

func TestSaturationFollowsAResizeInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []partition.Mode{partition.Enforce, partition.Observe} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), partition.WithMode(mode), size(workload.OLTP, 1))
			defer r.take(workload.OLTP, 1)()
			for _, step := range []struct {
				size int
				full time.Duration
			}{{1, time.Second}, {10, 0}, {1, time.Second}} {
				if err := r.pool(workload.OLTP).Resize(step.size); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if s := r.stats(workload.OLTP); s.SaturatedFor != step.full {
					t.Errorf("%s: 1 of %d in use, saturated for %v", mode, step.size, s.SaturatedFor)
				}
			}
			if s := r.stats(workload.OLTP); s.SaturatedTime != 2*time.Second {
				t.Errorf("%s: saturated for %v in all", mode, s.SaturatedTime)
			}
		})
	}
}

func TestObserveSetsNothingOnAnySession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		seen := &settingsSeen{}
		r := setup(t, fakedb.New(), observed, partition.WithName("shop"), partition.WithDialect(seen),
			partition.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			partition.WithPool(workload.OLTP, partition.PoolConfig{StatementTimeout: time.Second, LockTimeout: time.Second,
				IdleInTransactionTimeout: time.Second, ReadOnly: true, MaxHold: time.Second}))
		if _, err := r.db.ExecContext(oltp, "sleep 1h"); err != nil {
			t.Errorf("a statement of an hour: %v", err)
		}
		if got := seen.last(); got != (stmttimeout.Settings{ApplicationName: "shop"}) {
			t.Errorf("the session was to be set to %+v", got)
		}
		if n := strings.Count(log.String(), "level=INFO"); n != 1 || !strings.Contains(log.String(), "nothing is enforced") || strings.Contains(log.String(), "WARN") {
			t.Errorf("the log says %s", &log)
		}
	})
}

// settingsSeen is a dialect that keeps in mind what was asked for.
type settingsSeen struct {
	stmttimeout.Dialect
	mu   sync.Mutex
	want stmttimeout.Settings
}

func (d *settingsSeen) Setup(_ context.Context, _ stmttimeout.Session, want stmttimeout.Settings) (stmttimeout.Applied, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.want = want
	return stmttimeout.Applied{}, nil
}

func (*settingsSeen) Name() string                      { return "seen" }
func (*settingsSeen) Inspect(string) stmttimeout.Traits { return 0 }
func (*settingsSeen) Verdict(error) stmttimeout.Verdict { return 0 }

func (d *settingsSeen) last() stmttimeout.Settings {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.want
}

func TestObserveServesUnknownAndMissingTagsAndCountsThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed, partition.WithRequiredTag())
		for range 3 {
			r.mustExec(in("nobody's"), "ok")
		}
		r.mustExec(context.Background(), "ok")
		r.mustExec(reporting, "ok")
		if _, err := r.pool(workload.Batch).DB().Exec("ok"); err != nil {
			t.Error(err)
		}
		plan := r.reg.Plan()
		if plan.UnknownTags != 3 || plan.Untagged != 1 {
			t.Errorf("%d unknown tags, %d untagged", plan.UnknownTags, plan.Untagged)
		}
		for name, want := range map[workload.Name]uint64{workload.OLTP: 4, workload.Reporting: 1, workload.Batch: 1, workload.Admin: 0} {
			if s := r.stats(name); s.Acquired != want || s.Held != want {
				t.Errorf("%s: %+v, want %d", name, s, want)
			}
		}
	})
}

func TestObserveWatchesUnknownTagsAtTheFallback(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed, partition.WithFallback(workload.Batch))
		r.mustExec(in("elsewhere"), "ok")
		if s := r.stats(workload.Batch); s.Acquired != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestObserveHoldsNobodyUpButWhoPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed)
		r.mustExec(reporting, "ok")
		r.pool(workload.Reporting).Pause()
		if _, err := r.db.ExecContext(reporting, "ok"); !errors.Is(err, partition.ErrPaused) {
			t.Errorf("a paused workload got %v", err)
		}
		r.mustExec(oltp, "ok")
		r.pool(workload.Reporting).Resume()
		r.mustExec(reporting, "ok")
		if s := r.stats(workload.Reporting); s.RejectedPaused != 1 || s.Acquired != 2 {
			t.Errorf("%+v", s)
		}
	})
}

func TestObserveKeepsAPoolsOwnServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		replica := fakedb.New()
		r := setup(t, fakedb.New(), observed, partition.WithBudget(10), partition.WithPoolConnector(workload.Reporting, replica.Connector()))
		wait := r.sleepers(reporting, 9, time.Second)
		r.mustExec(oltp, "ok")
		if err := errors.Join(wait()...); err != nil {
			t.Error(err)
		}
		if own, shared := replica.Stats(), r.server.Stats(); own.PeakRunning != 3 || shared.PeakOpen != 1 {
			t.Errorf("%d at once on the replica of 3, %d on the shared server", own.PeakRunning, shared.PeakOpen)
		}
		if err := r.reg.Warm(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestObserveLeavesHoldersAloneAndReportsLeaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := &leaks{}
		r := setup(t, fakedb.New(), observed, partition.WithObserver(told), partition.WithPool(workload.Reporting,
			partition.PoolConfig{LeakAfter: time.Minute, MaxHold: 2 * time.Minute}))
		giveBack := r.take(workload.Reporting, 1)
		time.Sleep(time.Second)
		other := r.take(workload.OLTP, 1)
		time.Sleep(time.Hour)
		if h := r.reg.Holders(); len(h) != 2 || h[0].Pool != workload.Reporting || h[1].Pool != workload.OLTP {
			t.Errorf("holders: %+v", h)
		}
		giveBack()
		other()
		if s := r.stats(workload.Reporting); s.Leaked != 1 || s.Reclaimed != 0 {
			t.Errorf("reporting: %+v", s)
		}
		if s := r.stats(workload.OLTP); s.Leaked != 0 {
			t.Errorf("oltp: %+v", s)
		}
		told.mu.Lock()
		defer told.mu.Unlock()
		if len(told.leaked) != 1 || told.leaked[0].Pool != workload.Reporting || told.leaked[0].Age != time.Minute {
			t.Errorf("told of %+v", told.leaked)
		}
	})
}

func TestObserveTellsObserversTheWorkload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := &names{}
		r := setup(t, fakedb.New(), observed, partition.WithObserver(told))
		r.mustExec(reporting, "ok")
		r.mustExec(oltp, "ok")
		ctx, cancel := context.WithTimeout(oltp, time.Second)
		defer cancel()
		r.db.ExecContext(ctx, "sleep 1h")
		synctest.Wait()
		want := "opened reporting, acquired reporting, released reporting, acquired oltp, released oltp, acquired oltp, released oltp"
		if got := strings.Join(told.seen(), ", "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// names are the pools that an observer was told of.
type names struct {
	mu   sync.Mutex
	told []string
}

func (n *names) note(what string, pool workload.Name) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told = append(n.told, what+" "+string(pool))
}

func (n *names) seen() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told
}

func (n *names) AcquireDone(_ context.Context, e partition.AcquireEvent) { n.note("acquired", e.Pool) }
func (n *names) Released(e partition.ReleaseEvent)                       { n.note("released", e.Pool) }
func (n *names) ConnOpened(e partition.ConnEvent)                        { n.note("opened", e.Pool) }
func (n *names) ConnClosed(partition.ConnEvent)                          {}

func TestObserveDrainsAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed)
		r.tolerates = "close with"
		tx, err := r.db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.reg.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain: %v", err)
		}
		if err := tx.Commit(); !errors.Is(err, partition.ErrReclaimed) {
			t.Errorf("the late holder got %v", err)
		}
		if s := r.server.Stats(); s.Open != 0 {
			t.Errorf("%d connections are left", s.Open)
		}
		if err := r.db.Ping(); err == nil {
			t.Error("the handle is open")
		}
		if s := r.stats(workload.OLTP); s.InUse != 0 || s.Reclaimed != 1 || s.Held != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// Everything at once, for the race detector: walls that are watched, moved and read while connections are taken and given
// back by several workloads.
func TestObserveCountsEveryBorrowingUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed, partition.WithBudget(5))
		const each, rounds = 4, 100
		contexts := []context.Context{context.Background(), oltp, reporting, in(workload.Batch), in("unknown")}
		var all sync.WaitGroup
		for _, ctx := range contexts {
			for range each {
				all.Go(func() {
					for range rounds {
						if err := borrow(ctx, r.db); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		all.Go(func() {
			for i := range 50 {
				time.Sleep(ms)
				r.reg.Plan()
				r.reg.Untagged()
				r.pool(workload.OLTP).Resize(1 + i%2)
			}
		})
		all.Wait()
		r.idle()
		var held uint64
		for _, p := range r.reg.Pools() {
			s := p.Stats()
			held += s.Held
			if plan := r.planOf(p.Name()); plan.Evidence.Held != s.Held || plan.Evidence.Arrivals != s.Acquired {
				t.Errorf("%s: %+v, planned on %+v", p.Name(), s, plan.Evidence)
			}
		}
		if want := uint64(len(contexts) * each * rounds); held != want {
			t.Errorf("%d borrowings, want %d", held, want)
		}
		if plan := r.reg.Plan(); plan.Untagged != each*rounds || plan.UnknownTags != each*rounds {
			t.Errorf("%d untagged, %d unknown, want %d of each", plan.Untagged, plan.UnknownTags, each*rounds)
		}
		if n := r.server.Stats().PeakOpen; n > 5 {
			t.Errorf("%d connections on a budget of 5", n)
		}
	})
}

// borrow uses a connection in one of several ways, each for some time.
func borrow(ctx context.Context, db *sql.DB) error {
	d := time.Duration(rand.IntN(3)) * ms
	switch rand.IntN(3) {
	case 0:
		_, err := db.ExecContext(ctx, "sleep "+d.String())
		return err
	case 1:
		rows, err := db.QueryContext(ctx, "rows 2")
		if err != nil {
			return err
		}
		time.Sleep(d)
		return rows.Close()
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	time.Sleep(d)
	return conn.Close()
}

func TestApplyMovesTheWallsThatAreWatchedAndTheSharedPoolWithTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), observed, partition.WithBudget(6))
		err := r.reg.Apply(partition.Config{Budget: 8, Pools: map[workload.Name]partition.PoolConfig{workload.Reporting: {MaxOpenConns: 2}}})
		if err != nil {
			t.Fatal(err)
		}
		wait := r.sleepers(reporting, 30, time.Second)
		synctest.Wait()
		if n := r.server.Stats().PeakRunning; n != 8 {
			t.Errorf("%d ran at once on a budget of 8", n)
		}
		if err := errors.Join(wait()...); err != nil {
			t.Errorf("reports: %v", err)
		}
		if p := r.planOf(workload.Reporting); p.MaxOpenConns != 2 || p.Evidence.RejectedQueueFull == 0 {
			t.Errorf("the wall: %+v", p)
		}
		err = r.reg.Apply(partition.Config{Mode: partition.Enforce})
		if err == nil || !strings.Contains(err.Error(), "Mode") {
			t.Errorf("the mode changed: %v", err)
		}
	})
}
