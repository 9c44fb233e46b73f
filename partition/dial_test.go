package partition_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
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

// P01. A dial of 120 ms under an acquire timeout of 100 ms: cancelled with its caller it would never end well.
func TestDialOutlivesItsCallerAndWarmsThePool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.server.On(fakedb.Dial, fakedb.Delay(120*ms))
		began := time.Now()
		_, err := r.db.ExecContext(oltp, "ok")
		e := rejection(t, err)
		if e.Reason != partition.ReasonAcquireTimeout || !e.Dialing || time.Since(began) != 100*ms {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if s := r.stats(workload.OLTP); s.InUse != 1 {
			t.Errorf("the dial gave up its permit: %+v", s)
		}
		time.Sleep(30 * ms)
		for range 20 {
			r.mustExec(oltp, "ok")
		}
		if s := r.server.Stats(); s.Dials != 1 {
			t.Errorf("%d dials, want 1", s.Dials)
		}
	})
}

func TestWaitingCallerGetsTheConnectionThatAnotherOnesDialMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 1))
		r.server.On(fakedb.Dial, fakedb.Delay(120*ms))
		go r.db.ExecContext(oltp, "ok") // leaves after 100 ms
		time.Sleep(50 * ms)
		if _, err := r.db.ExecContext(oltp, "ok"); err != nil {
			t.Errorf("served at 120 ms it has waited 70: %v", err)
		}
		if n := r.server.Stats().Dials; n != 1 {
			t.Errorf("%d dials", n)
		}
	})
}

// P10
func TestRefusedDialIsTriedOnce(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	for _, entry := range entryPoints {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New())
			r.server.On(fakedb.Dial, fakedb.Fail(refused))
			if err := entry.call(oltp, r.db); err != refused {
				t.Errorf("%s: got %v, want the dialler's own error", entry.name, err)
			}
			if n := r.server.Stats().Dials; n != 1 {
				t.Errorf("%s: %d dials", entry.name, n)
			}
			r.idle()
		})
	}
}

// P10
func TestDialThatSaysBadConnIsTriedAsOftenAsPlain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.server.On(fakedb.Dial, fakedb.Fail(sqldriver.ErrBadConn))
		if _, err := r.db.ExecContext(oltp, "ok"); err != sqldriver.ErrBadConn {
			t.Errorf("%v", err)
		}
		if n := r.server.Stats().Dials; n != 3 {
			t.Errorf("%d dials, plain makes 3", n)
		}
		r.idle()
	})
}

// P10, C24
func TestHangingDialCostsOneAcquireTimeout(t *testing.T) {
	t.Parallel()
	for _, entry := range entryPoints {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New())
			r.server.On(fakedb.Dial, fakedb.Delay(time.Hour))
			began := time.Now()
			err := entry.call(oltp, r.db)
			if !errors.Is(err, partition.ErrAcquireTimeout) || time.Since(began) != 100*ms {
				t.Errorf("%s: %v after %v", entry.name, err, time.Since(began))
			}
			time.Sleep(5 * time.Second)
			r.idle()
			if s := r.stats(workload.OLTP); s.OpenFailures != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestConnectionThatHangsInResetCostsOneAcquireTimeout(t *testing.T) {
	t.Parallel()
	for _, entry := range entryPoints {
		if entry.name == "Conn" {
			continue // database/sql asks nothing of the connection; the first call on it says so
		}
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New())
			r.fill(workload.OLTP, 4)
			r.server.On(fakedb.Reset, fakedb.Delay(time.Hour))
			began := time.Now()
			err := entry.call(oltp, r.db)
			if !errors.Is(err, partition.ErrAcquireTimeout) || time.Since(began) != 100*ms {
				t.Errorf("%s: %v after %v", entry.name, err, time.Since(began))
			}
			synctest.Wait()
			r.idle()
			r.server.On(fakedb.Reset, nil)
			if err := entry.call(oltp, r.db); err != nil {
				t.Errorf("%s: next call: %v", entry.name, err)
			}
		})
	}
}

// database/sql would wrap what the check of an argument returns.
func TestRejectionOfACallWithArgumentsIsNotWrapped(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*sql.DB, *sql.Stmt) error{
		"Exec":      func(db *sql.DB, _ *sql.Stmt) error { _, err := db.ExecContext(oltp, "ok ?", 1); return err },
		"QueryRow":  func(db *sql.DB, _ *sql.Stmt) error { return db.QueryRowContext(oltp, "ok ?", 1).Err() },
		"Stmt.Exec": func(_ *sql.DB, s *sql.Stmt) error { _, err := s.ExecContext(oltp, 1); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New())
			stmt := r.mustPrepare(oltp, "ok ?")
			defer stmt.Close()
			r.server.On(fakedb.Reset, fakedb.Delay(time.Hour))
			if err := call(r.db, stmt); !strings.HasPrefix(fmt.Sprint(err), `partition: pool "oltp": `) {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait()
			r.idle()
		})
	}
}

func TestNoWaitQueuesForNothingAndStillDials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, AcquireTimeout: partition.NoWait}))
		r.server.On(fakedb.Dial, fakedb.Delay(time.Second))
		r.mustExec(oltp, "ok")
		defer r.take(workload.OLTP, 1)()
		began := time.Now()
		if _, err := r.db.ExecContext(oltp, "ok"); !errors.Is(err, partition.ErrAcquireTimeout) || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// P07: idle connections are dead, and nothing tells before the first call on each.
func TestDeadIdleConnectionsCostNobodyACall(t *testing.T) {
	t.Parallel()
	for _, seen := range []fakedb.Interfaces{0, fakedb.SessionResetter} {
		for _, entry := range entryPoints {
			if entry.name == "Ping" && seen == 0 {
				continue // plain database/sql pings once, and reports what it finds
			}
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, fakedb.New(fakedb.WithKillSeenBy(seen)))
				r.fill(workload.OLTP, 8)
				r.server.KillAll()
				for i := range 8 {
					if err := entry.call(oltp, r.db); err != nil {
						t.Errorf("%s, call %d after the restart: %v", entry.name, i+1, err)
					}
				}
				synctest.Wait()
				r.idle()
			})
		}
	}
}

// P07, for a driver that leaves plain queries to prepared statements (go-sql-driver/mysql with arguments does).
func TestDeadIdleConnectionsCostNobodyACallThatIsPreparedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(fakedb.Without(fakedb.ExecerContext)))
		r.fill(workload.OLTP, 8)
		r.server.KillAll()
		for range 8 {
			if _, err := r.db.ExecContext(oltp, "ok"); err != nil {
				t.Error(err)
			}
		}
	})
}

// P07, for a text that was prepared on the dead connection: to prepare it again sends nothing, so it finds out nothing.
func TestDeadIdleConnectionsCostNobodyAStatementThatIsPreparedThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		held := r.mustPrepare(oltp, "id")
		defer held.Close()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { drain(held.QueryContext(oltp)) })
		}
		all.Wait()
		r.fill(workload.OLTP, 8)
		r.server.KillAll()
		for range 8 {
			for _, db := range []*sql.DB{r.db, r.pool(workload.OLTP).DB()} { // its first use of the pool is a Connect
				stmt, err := db.PrepareContext(oltp, "id")
				if err == nil {
					err = drain(stmt.QueryContext(oltp))
					stmt.Close()
				}
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// P07
func TestDeadConnectionIsReplacedWhileThePoolIsSaturated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 3))
		r.fill(workload.OLTP, 3)
		giveBack := r.take(workload.OLTP, 2)
		r.server.KillAll()
		r.mustExec(oltp, "ok")
		giveBack()
		for range 3 {
			r.mustExec(oltp, "ok")
		}
	})
}

// P09
// P08
func TestSlowCloseInOnePoolIsNotFeltInAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.server.On(fakedb.CloseConn, fakedb.Delay(2*time.Second))
		stmt := r.mustPrepare(oltp, "ok")
		began := time.Now()
		r.db.ExecContext(reporting, "badconn wrapped")
		stmt.Close()
		r.mustExec(oltp, "ok")
		if took := time.Since(began); took != 0 {
			t.Errorf("oltp waited %v", took)
		}
		time.Sleep(5 * time.Second)
	})
}

// C19: what could not be set up is not used, and not left open.
func TestConnectionWhoseSetUpFailsIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("permission denied")
		s := fakedb.New()
		s.Handle(func(context.Context, fakedb.Call) (*fakedb.Answer, error) { return nil, broken })
		r := setup(t, s, partition.WithDialect(stmttimeout.Postgres()))
		if _, err := r.db.ExecContext(oltp, "ok"); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if n := s.Stats().Open; n != 0 {
			t.Errorf("%d connections left open", n)
		}
		r.idle()
	})
}

func TestManyCallersOfAColdPoolDialNoMoreThanItsCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 4, MaxWaiting: 100}))
		r.server.On(fakedb.Dial, fakedb.Delay(90*ms))
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { r.mustExec(oltp, "ok") })
		}
		all.Wait()
		if s := r.server.Stats(); s.Dials != 4 {
			t.Errorf("%d dials", s.Dials)
		}
	})
}
