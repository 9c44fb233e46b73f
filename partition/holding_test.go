package partition_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func holding(c partition.PoolConfig) partition.Option { return partition.WithPool(workload.OLTP, c) }

// closedUnder is what the fake says of a connection that is closed under a call, as it must be where the driver is deaf.
const closedUnder = "close during"

func TestDriverThatIgnoresItsContextIsClosedUnder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		caller, limit, want time.Duration
	}{
		"the caller's deadline":  {300 * ms, 5 * time.Second, 2300 * ms},
		"the statement timeout":  {time.Hour, 200 * ms, 1200 * ms},
		"a deadline and nothing": {300 * ms, partition.NoTimeout, 2300 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, fakedb.New(), holding(partition.PoolConfig{MaxOpenConns: 1, StatementTimeout: tt.limit}))
				r.tolerates = closedUnder
				ctx, cancel := context.WithTimeout(oltp, tt.caller)
				defer cancel()
				began := time.Now()
				_, err := r.db.ExecContext(ctx, "deaf")
				if took := time.Since(began); took != tt.want || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("after %v: %v", took, err)
				}
				synctest.Wait()
				r.idle()
				r.mustExec(oltp, "ok")
				if s := r.stats(workload.OLTP); s.EndedUnknown != 1 || s.Ending != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// held are all ways to hold a connection without a statement that runs.
var held = []struct {
	name string
	hold func(db *sql.DB) (use func() error, err error)
}{
	{"rows open", func(db *sql.DB) (func() error, error) {
		rows, err := db.QueryContext(oltp, "rows 9")
		return func() error {
			defer rows.Close()
			for rows.Next() {
			}
			return rows.Err()
		}, err
	}},
	{"idle in transaction", func(db *sql.DB) (func() error, error) {
		tx, err := db.BeginTx(oltp, nil)
		return func() error {
			_, err := tx.Exec("ok")
			return errors.Join(err, tx.Rollback())
		}, err
	}},
	{"idle in transaction", func(db *sql.DB) (func() error, error) {
		tx, err := db.BeginTx(oltp, nil)
		return func() error { return tx.Commit() }, err
	}},
	{"idle", func(db *sql.DB) (func() error, error) {
		conn, err := db.Conn(oltp)
		return func() error {
			defer conn.Close()
			return conn.PingContext(oltp)
		}, err
	}},
	{"idle", func(db *sql.DB) (func() error, error) {
		conn, err := db.Conn(oltp)
		if err != nil {
			return nil, err
		}
		stmt, err := conn.PrepareContext(oltp, "ok")
		return func() error {
			_, err := stmt.Exec()
			stmt.Close()
			conn.Close()
			return err
		}, err
	}},
	{"idle", func(db *sql.DB) (func() error, error) {
		conn, err := db.Conn(oltp)
		return func() error {
			defer conn.Close()
			return partition.Raw(conn, func(any) error { return errors.New("it was there") })
		}, err
	}},
}

func TestConnectionHeldForTooLongIsTakenBackAndItsHolderTold(t *testing.T) {
	t.Parallel()
	for _, h := range held {
		t.Run(h.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := &leaks{}
				r := setup(t, fakedb.New(), partition.WithObserver(told),
					holding(partition.PoolConfig{MaxOpenConns: 1, LeakAfter: time.Second, MaxHold: 3 * time.Second, AcquireTimeout: time.Minute}))
				r.tolerates = "close with" // rows or a transaction open
				use, err := h.hold(r.db)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				r.mustExec(oltp, "ok")
				if waited := time.Since(began); waited != 3*time.Second {
					t.Errorf("the next borrower waited %v", waited)
				}
				if err := use(); !errors.Is(err, partition.ErrReclaimed) || errors.Is(err, partition.ErrRejected) {
					t.Errorf("the late holder got %v", err)
				}
				synctest.Wait()
				r.idle()
				r.mustExec(oltp, "ok")
				if s := r.stats(workload.OLTP); s.Leaked != 1 || s.Reclaimed != 1 {
					t.Errorf("%+v", s)
				}
				told.check(t, h.name, time.Second, 3*time.Second)
			})
		})
	}
}

// leaks is a LeakObserver.
type leaks struct {
	mu              sync.Mutex
	leaked, reclaim []partition.Holder
}

func (l *leaks) Leaked(e partition.LeakEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaked = append(l.leaked, e.Holder)
}

func (l *leaks) Reclaimed(e partition.LeakEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reclaim = append(l.reclaim, e.Holder)
}

func (l *leaks) check(t *testing.T, activity string, leakedAt, reclaimedAt time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, got := range map[time.Duration][]partition.Holder{leakedAt: l.leaked, reclaimedAt: l.reclaim} {
		if len(got) != 1 || got[0].Age != at || string(got[0].Activity) != activity || got[0].Tag != workload.OLTP {
			t.Errorf("told at %v: %+v", at, got)
		}
	}
}

func TestStackOfALeakIsTheCallersWhenAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), holding(partition.PoolConfig{LeakStacks: true}))
		defer r.take(workload.OLTP, 1)()
		h := r.reg.Holders()
		if len(h) != 1 || !strings.HasPrefix(h[0].Stack, "github.com/sqlbulkhead/sqlbulkhead/partition_test.(*rig).take") {
			t.Errorf("%+v", h)
		}
	})
}

func TestRejectionNamesTheLongestHoldersFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), holding(partition.PoolConfig{MaxOpenConns: 5, MaxWaiting: partition.NoQueue}))
		for range 5 {
			defer r.take(workload.OLTP, 1)()
			time.Sleep(time.Second)
		}
		_, err := r.db.ExecContext(oltp, "ok")
		e := rejection(t, err)
		if len(e.Holders) != 3 || e.Holders[0].Age != 5*time.Second || e.Holders[2].Age != 3*time.Second || e.LimitedBy != partition.LimitedByPermits {
			t.Errorf("%+v", e)
		}
		if all := r.reg.Holders(); len(all) != 5 || all[4].Age != time.Second {
			t.Errorf("all: %+v", all)
		}
	})
}

// Holders that are taken back at any moment, also while they call: nobody else's connection is touched, none is used by two
// at once or after it was closed (the fake would say so), and no permit is lost.
func TestTakingBackRacesWithEveryUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(fakedb.WithCancelBreaks()), holding(partition.PoolConfig{
			MaxOpenConns: 3, MaxWaiting: 100, AcquireTimeout: time.Hour, MaxHold: 40 * ms, StatementTimeout: time.Second}))
		r.tolerates = "close with" // rows or a transaction open
		var all sync.WaitGroup
		var reclaimed, fine int
		var mu sync.Mutex
		for range 12 {
			all.Go(func() {
				for range 60 {
					err := useForAWhile(r.db)
					mu.Lock()
					if errors.Is(err, partition.ErrReclaimed) {
						reclaimed++
					} else if err == nil {
						fine++
					} else {
						t.Errorf("%v", err)
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		synctest.Wait()
		r.idle()
		if reclaimed == 0 || fine == 0 {
			t.Errorf("%d taken back, %d not: one of the two was not tried", reclaimed, fine)
		}
	})
}

// useForAWhile makes some calls, with pauses, which take about as long as a connection may be held.
func useForAWhile(db *sql.DB) error {
	pause := func() { time.Sleep(time.Duration(rand.IntN(8)) * ms) }
	tx, err := db.BeginTx(oltp, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for range 2 {
		pause()
		if _, err := tx.Exec([]string{"ok", "sleep 5ms"}[rand.IntN(2)]); err != nil {
			return err
		}
		rows, err := tx.Query("rows 3 sleep 1ms")
		if err != nil {
			return err
		}
		for rows.Next() {
			pause()
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func TestDrainWaitsForHoldersAndTurnsOthersAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 1))
		giveBack := r.take(workload.OLTP, 1)
		done := make(chan error, 1)
		go func() { done <- r.reg.Drain(t.Context()) }()
		synctest.Wait()
		if _, err := r.db.ExecContext(reporting, "ok"); err == nil || errors.Is(err, partition.ErrRejected) {
			t.Errorf("a new acquire got %v", err)
		}
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Fatalf("Drain did not wait: %v", err)
		default:
		}
		giveBack()
		if err := <-done; err != nil {
			t.Errorf("Drain: %v", err)
		}
		if s := r.server.Stats(); s.Open != 0 {
			t.Errorf("%d connections are left", s.Open)
		}
	})
}
