package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

const (
	analysts = 40
	shared   = 20 // connections, of which analysts get 3

	loginCount    = 400
	loginEvery    = 10 * ms // 100 a second, whether the earlier ones are done or not
	loginDeadline = time.Second

	reportingWait = 50 * ms
)

// shift is what became of all logins.
type shift struct {
	failed   int
	p50, p99 time.Duration // from the moment in which the login was due
	err      error         // the first
}

func (s shift) String() string {
	return fmt.Sprintf("%d of %d logins failed, p50 %v, p99 %v", s.failed, loginCount, s.p50.Round(10*time.Microsecond), s.p99.Round(10*time.Microsecond))
}

// logins is the open loop: a slow login does not put off the next.
func logins(db *sql.DB) (s shift) {
	took, errs := make([]time.Duration, loginCount), make([]error, loginCount)
	var all sync.WaitGroup
	began := time.Now()
	for i := range took {
		due := began.Add(time.Duration(i) * loginEvery)
		time.Sleep(time.Until(due))
		all.Go(func() {
			ctx, cancel := context.WithDeadline(oltp, due.Add(loginDeadline))
			defer cancel()
			var one int
			errs[i] = db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
			took[i] = time.Since(due)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			s.failed++
			s.err = errors.Join(s.err, err)
		}
	}
	slices.Sort(took)
	s.p50, s.p99 = took[loginCount/2], took[loginCount*99/100]
	return s
}

// analyse has the analysts run 2-second statements, without a break, until stop is called.
func analyse(t *testing.T, db *sql.DB, tg target) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(reporting)
	var all sync.WaitGroup
	for range analysts {
		all.Go(func() {
			for ctx.Err() == nil {
				report(t, ctx, db, tg)
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

func report(t *testing.T, ctx context.Context, db *sql.DB, tg target) {
	began := time.Now()
	_, err := db.ExecContext(ctx, twoSeconds(tg))
	took := time.Since(began)
	switch {
	case errors.Is(err, partition.ErrRejected):
		if took > reportingWait+slack {
			t.Errorf("an analyst was rejected after %v, and waits at most %v", took, reportingWait)
		}
		select { // a moment before the next attempt
		case <-ctx.Done():
		case <-time.After(100 * ms):
		}
	case err != nil && ctx.Err() == nil:
		t.Errorf("report: %v", err)
	}
}

func twoSeconds(tg target) string {
	if tg.arg == "?" {
		return "SELECT count(*) FROM seq_1_to_20 WHERE SLEEP(0.1) = 0"
	}
	return "SELECT pg_sleep(2)"
}

// Not parallel: it measures time.
func TestLoginsDoNotNoticeTheAnalysts(t *testing.T) {
	for _, tg := range []target{pgx, mariadb} {
		t.Run(tg.name, func(t *testing.T) {
			r := setup(t, tg,
				pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: shared - 3}),
				pool(workload.Reporting, partition.PoolConfig{MaxOpenConns: 3, AcquireTimeout: reportingWait}))
			_, giveBack := r.take(oltp, shared-3) // all are open
			giveBack()
			// A figure of a machine that does something else meanwhile is noise; a wall that leaks shows every time.
			for attempt := 1; !calm(t, r, attempt == 3); attempt++ {
			}
			s := r.stats(workload.OLTP)
			if s.RejectedQueueFull+s.RejectedTimeout+s.CallerGaveUp != 0 {
				t.Errorf("the oltp pool has turned logins away: %+v", s)
			}
			if s := r.stats(workload.Reporting); s.RejectedQueueFull+s.RejectedTimeout == 0 || s.PeakInUse > 3 {
				t.Errorf("the reporting pool has not held the analysts back: %+v", s)
			}
		})
	}
}

// calm compares logins beside analysts with logins alone. A failed login is an error; a slow p99 only the last time.
func calm(t *testing.T, r *rig, last bool) bool {
	t.Helper()
	alone := logins(r.db)
	stop := analyse(t, r.db, r.target)
	r.busy(workload.Reporting, 3)
	beside := logins(r.db)
	stop()
	t.Logf("%s: alone %v; beside %d analysts %v", r.target.name, alone, analysts, beside)
	if alone.failed+beside.failed > 0 {
		t.Errorf("%v; %v", alone.err, beside.err)
		return true
	}
	if beside.p99 <= alone.p99*3/2+2*ms {
		return true
	}
	if last {
		t.Errorf("p99 of the logins %v, more than 1.5 times the %v without analysts", beside.p99, alone.p99)
	}
	return last
}

// The control: one pool for all is seen to fail, under the same load.
func TestLoginsBehindAnalystsInOnePoolMissTheirDeadline(t *testing.T) {
	for _, tg := range []target{pgx, mariadb} {
		t.Run(tg.name, func(t *testing.T) {
			db := open(t, tg.driver, tg.dsn(t))
			db.SetMaxOpenConns(shared)
			db.SetMaxIdleConns(shared)
			_, giveBack := checkOut(t, oltp, db, shared)
			giveBack()
			stop := analyse(t, db, tg)
			eventually(t, 10*time.Second, func() string {
				if n := db.Stats().InUse; n != shared {
					return fmt.Sprintf("%d in use", n)
				}
				return ""
			})
			s := logins(db)
			stop()
			t.Logf("%s: one pool of %d, beside %d analysts %v", tg.name, shared, analysts, s)
			if s.failed < loginCount/10 {
				t.Errorf("only %d of %d logins failed: the load proves nothing", s.failed, loginCount)
			}
		})
	}
}
