package integration

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// impatient is an oltp pool that gives up soon. Its connections are open already, so that dialing plays no part.
func impatient(t *testing.T, tg target, conns int) *rig {
	t.Helper()
	r := setup(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: conns, AcquireTimeout: 100 * ms}))
	eventually(t, 10*time.Second, func() string { // the first callers may leave before the dial is done
		if err := r.db.PingContext(oltp); err != nil {
			return err.Error()
		}
		return ""
	})
	return r
}

// C01
func TestAcquireTimeoutEndsWithTheAcquire(t *testing.T) {
	on(t, allTargets, func(t *testing.T, tg target) {
		r := impatient(t, tg, 1)
		const five = "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5"
		rows, err := r.db.QueryContext(oltp, five)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		time.Sleep(300 * ms)
		if n, err := drain(rows); n != 5 || err != nil {
			t.Errorf("%d rows, %v after a pause, want all 5", n, err)
		}
		inTx(t, oltp, r.db, func(tx *sql.Tx) {
			time.Sleep(300 * ms)
			if _, err := tx.ExecContext(oltp, "SELECT 1"); err != nil {
				t.Error(err)
			}
		})
	})
}

// drain reads rows to their end.
func drain(rows *sql.Rows) (n int, err error) {
	defer rows.Close()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

// C12
func TestQueryBesideAnOpenTransactionIsRejectedAndTheTransactionCommits(t *testing.T) {
	on(t, allTargets, func(t *testing.T, tg target) {
		r := impatient(t, tg, 1)
		inTx(t, oltp, r.db, func(tx *sql.Tx) {
			began := time.Now()
			_, err := r.db.ExecContext(oltp, "SELECT 1")
			between(t, "the rejection", time.Since(began), 100*ms, 250*ms)
			if !errors.Is(err, partition.ErrAcquireTimeout) || !strings.Contains(err.Error(), `pool "oltp"`) {
				t.Errorf("got %v, want an acquire timeout that names the pool", err)
			}
		})
	})
}

// C13
func TestAcquireTimeoutAndCallersDeadlineAreToldApart(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r := impatient(t, tg, 1)
		_, giveBack := r.take(oltp, 1)
		defer giveBack()
		before := r.stats(workload.OLTP)

		err := pingWithin(r.db, 5*time.Second)
		if !errors.Is(err, partition.ErrAcquireTimeout) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with time left: %v, want the acquire timeout alone", err)
		}
		err = pingWithin(r.db, 50*ms)
		var refused *partition.AcquireError
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, partition.ErrAcquireTimeout) || !errors.As(err, &refused) {
			t.Fatalf("out of time: %v, want the caller's deadline in an AcquireError", err)
		}
		if refused.Waited < 40*ms || !strings.Contains(err.Error(), "waited") {
			t.Errorf("%v does not say that it waited", err)
		}
		s := r.stats(workload.OLTP)
		if s.RejectedTimeout-before.RejectedTimeout != 1 || s.CallerGaveUp-before.CallerGaveUp != 1 || s.Waited-before.Waited != 2 {
			t.Errorf("counters from %+v to %+v", before, s)
		}
		for _, p := range r.reg.Pools() {
			if s := p.Stats(); p.Name() != workload.OLTP && (s.Waited != 0 || s.CallerGaveUp != 0 || s.RejectedTimeout != 0) {
				t.Errorf("the counters of pool %s moved: %+v", p.Name(), s)
			}
		}
	})
}

func pingWithin(db *sql.DB, d time.Duration) error {
	ctx, cancel := context.WithTimeout(oltp, d)
	defer cancel()
	return db.PingContext(ctx)
}

// C28
func TestFullReportingPoolLeavesLookUpsAlone(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r := setup(t, tg, pool(workload.Reporting, partition.PoolConfig{MaxOpenConns: 2, AcquireTimeout: 50 * ms}))
		if err := r.reg.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		conns := make([]*sql.Rows, 2)
		for i := range conns { // two unclosed Rows
			conns[i] = openRows(t, r)
			defer conns[i].Close()
		}
		if served, rejected := reports(t, r, 10); served != 0 || rejected != 10 {
			t.Errorf("behind unclosed rows %d reports were served and %d rejected", served, rejected)
		}
		lookUps(t, r)
		conns[0].Close()
		conns[1].Close()

		ctx, cancel := context.WithCancel(reporting)
		defer cancel()
		var running sync.WaitGroup
		for range 2 {
			running.Go(func() { r.db.ExecContext(ctx, tg.slow) })
		}
		eventually(t, 10*time.Second, func() string {
			if n := r.stats(workload.Reporting).InUse; n != 2 {
				return "the reports do not run"
			}
			return ""
		})
		if served, rejected := reports(t, r, 10); served != 0 || rejected != 10 {
			t.Errorf("beside running reports %d were served and %d rejected", served, rejected)
		}
		lookUps(t, r)
		if s := r.stats(workload.OLTP); s.Waited != 0 {
			t.Errorf("%d look-ups waited", s.Waited)
		}
		cancel()
		running.Wait()
	})
}

func openRows(t *testing.T, r *rig) *sql.Rows {
	t.Helper()
	var rows *sql.Rows
	eventually(t, 10*time.Second, func() string {
		var err error
		if rows, err = r.db.QueryContext(reporting, "SELECT 1"); err != nil {
			return err.Error() // dialing took longer than this pool waits
		}
		return ""
	})
	if rows == nil {
		t.FailNow()
	}
	return rows
}

// reports starts n reports at once.
func reports(t *testing.T, r *rig, n int) (served, rejected int) {
	t.Helper()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			began := time.Now()
			_, errs[i] = r.db.ExecContext(reporting, r.target.slow)
			between(t, "a rejection", time.Since(began), 0, 50*ms)
		})
	}
	all.Wait()
	for _, err := range errs {
		switch {
		case err == nil:
			served++
		case errors.Is(err, partition.ErrRejected):
			rejected++
		default:
			t.Errorf("report: %v", err)
		}
	}
	return served, rejected
}

func lookUps(t *testing.T, r *rig) {
	t.Helper()
	took := make([]time.Duration, 100)
	for i := range took {
		began := time.Now()
		r.exec(oltp, "SELECT 1")
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	between(t, "p99 of the look-ups", took[98], 0, 100*ms)
}

// C28
func TestPoolsPastTheBudgetAreRefusedAtOpen(t *testing.T) {
	t.Parallel()
	_, err := partition.Open("pgx", pgx.dsn(t), partition.WithBudget(20),
		pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 15}),
		pool(workload.Reporting, partition.PoolConfig{MaxOpenConns: 6}))
	if err == nil || !strings.Contains(err.Error(), "budget of 20") {
		t.Errorf("got %v, want the budget of 20 to refuse 21", err)
	}
}

// P01: the acquire timeout is shorter than the dial, which would never end if it were cancelled with its caller.
func TestPoolBehindASlowNetworkWarmsThoughItsCallersLeaveEarly(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		dsn := tg.dsn(t)
		if tg.arg == "?" { // on MariaDB a KILL of another test's SLEEP() can keep everybody from connecting for two seconds
			dsn = testserver.StartMariaDB(t).DSN
		}
		slow := testserver.WithAddr(dsn, testserver.Delay(t, testserver.AddrOf(dsn), 10*ms)) // 20 ms both ways together
		r := setupOn(t, tg, slow, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 3, AcquireTimeout: 50 * ms}))
		const callers = 20
		served := make([]bool, callers)
		for i := range served {
			err := r.db.PingContext(oltp)
			served[i] = err == nil
			if err != nil && !errors.Is(err, partition.ErrAcquireTimeout) {
				t.Errorf("caller %d: %v", i, err)
			}
		}
		if s := r.stats(workload.OLTP); s.Opened == 0 || s.OpenFailures != 0 {
			t.Errorf("opened %d, failed %d", s.Opened, s.OpenFailures)
		}
		if served[0] {
			t.Skip("the dial was faster than the acquire timeout: nothing to see")
		}
		if slices.Contains(served[callers-5:], false) {
			t.Errorf("the pool never warmed: served %v", served)
		}
	})
}
