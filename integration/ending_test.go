package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// slowUpdate changes row 2 of a table, three seconds from now.
func (w *watched) slowUpdate() (table, update string) {
	table = w.table("id int PRIMARY KEY, v int")
	w.exec(in(workload.Admin), "INSERT INTO "+table+" VALUES (1, 0), (2, 0), (3, 0)")
	if w.target.arg == "?" {
		return table, "UPDATE " + table + " SET v = v + 1 WHERE id = 2 AND SLEEP(3) = 0"
	}
	return table, "UPDATE " + table + " SET v = v + 1 FROM pg_sleep(3) WHERE id = 2"
}

func TestCancelledStatementIsGoneFromTheServerAndTakesNoEffect(t *testing.T) {
	on(t, slices.Concat(serverTargets, tracedTargets[:1], mutedTargets), func(t *testing.T, tg target) {
		w := watch(t, tg, pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 1, StatementTimeout: partition.NoTimeout}))
		table, update := w.slowUpdate()
		began := w.giveUp(update)
		w.gone(time.Until(began.Add(1200 * ms)))
		w.settled()
		if s := w.stats(workload.Batch); !strings.HasPrefix(tg.name, "pq") && // whose cancelled call returns with the server's answer
			(s.EndedConfirmed+s.EndedForced != 1 || s.EndedUnknown != 0 || s.EndProblem != "") { // MariaDB's KILL may take seconds
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Until(began.Add(3200 * ms)))
		if v := ask(t, context.Background(), w.admin, "SELECT v FROM "+table+" WHERE id = 2"); v != "0" {
			t.Errorf("the cancelled update took effect: v = %s", v)
		}
	})
}

// C16. On MariaDB and PostgreSQL the server itself ends it; nobody else has set a limit.
func TestUpdateThatExceedsItsTimeoutTakesNoEffect(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		w := watch(t, tg, pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 1, StatementTimeout: 200 * ms}))
		table, update := w.slowUpdate()
		began := time.Now()
		if _, err := w.db.ExecContext(in(workload.Batch), update); !errors.Is(err, stmttimeout.ErrExceeded) {
			t.Errorf("got %v", err)
		}
		between(t, "the timeout", time.Since(began), 190*ms, time.Second)
		w.gone(time.Second)
		time.Sleep(time.Until(began.Add(3200 * ms)))
		if v := ask(t, context.Background(), w.admin, "SELECT v FROM "+table+" WHERE id = 2"); v != "0" {
			t.Errorf("the update took effect: v = %s", v)
		}
	})
}

// Where the driver tells the server nothing, a late kill could hit whoever has the session next.
func TestCancelNeverHitsTheNextStatement(t *testing.T) {
	on(t, []target{pgx, mariadb}, func(t *testing.T, tg target) {
		w := watch(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 2, AcquireTimeout: 20 * time.Second}))
		short := "SELECT pg_sleep(0.003)"
		if tg.arg == "?" {
			short = "SELECT SLEEP(0.003)"
		}
		for i := range 500 {
			ctx, cancel := context.WithTimeout(oltp, 2*ms+time.Duration(rand.IntN(3000))*time.Microsecond)
			w.db.ExecContext(ctx, short)
			cancel()
			if v := ask(t, oltp, w.db, "SELECT 5"); v != "5" {
				t.Fatalf("round %d: SELECT 5 is %s", i, v)
			}
		}
	})
}

// P02.
func TestCancelStormPutsNoMoreOnTheServerThanTheCap(t *testing.T) {
	const conns, storm, every = 5, 10 * time.Second, 5 * ms
	on(t, []target{pgx, mariadb, tracedTargets[0]}, func(t *testing.T, tg target) {
		w := watch(t, tg, pool(workload.Batch, partition.PoolConfig{MaxOpenConns: conns, MaxWaiting: 20, AcquireTimeout: 100 * ms}))
		slow := tg.slow
		if tg.arg == "?" { // all SLEEP()s wait on one mutex of MariaDB's, and a storm of KILLs stalls on it
			lock := fmt.Sprintf("SELECT GET_LOCK('%s', 5)", w.name)
			holders, _ := checkOut(t, t.Context(), w.admin, 1)
			ask(t, t.Context(), holders[0], lock)
			slow = lock
		}
		seen := w.watchList()
		var callers sync.WaitGroup
		for end, tick := time.Now().Add(storm), time.NewTicker(every); time.Now().Before(end); <-tick.C {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(in(workload.Batch), 150*ms)
				defer cancel()
				if _, err := w.db.ExecContext(ctx, slow); err == nil {
					t.Error("a statement of five seconds ended within its 150 ms")
				}
			})
		}
		callers.Wait()
		connections, statements := seen()
		w.settled()
		s := w.stats(workload.Batch)
		t.Logf("at most %d connections and %d statements on the server; ended: %d confirmed, %d forced, %d unknown; %d acquired",
			connections, statements, s.EndedConfirmed, s.EndedForced, s.EndedUnknown, s.Acquired)
		if connections > conns || statements > conns {
			t.Errorf("the server had %d connections and %d statements at once, the cap is %d", connections, statements, conns)
		}
		if s.EndedUnknown > 0 || s.EndedConfirmed+s.EndedForced == 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestLeakedRowsHealAfterMaxHold(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		w := watch(t, tg, pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 3, MaxHold: time.Second, AcquireTimeout: 3 * time.Second}))
		batch := in(workload.Batch)
		many := "SELECT * FROM generate_series(1, 100000)"
		if tg.arg == "?" {
			many = "SELECT * FROM seq_1_to_100000"
		}
		_, giveBack := w.take(workload.LongHeld(batch), 3) // all are open
		giveBack()
		began := time.Now()
		var leaked []*sql.Rows
		for range 3 {
			rows, err := w.db.QueryContext(batch, many)
			if err != nil {
				t.Fatal(err)
			}
			rows.Next()
			leaked = append(leaked, rows)
		}
		if v := ask(t, batch, w.db, "SELECT 5"); v != "5" {
			t.Errorf("SELECT 5 is %s", v)
		}
		t.Logf("served again %v after the first was leaked", time.Since(began))
		between(t, "healing", time.Since(began), time.Second, 1500*ms)
		eventually(t, 5*time.Second, func() string {
			if s := w.stats(workload.Batch); s.Reclaimed != 3 {
				return fmt.Sprintf("%d of 3 taken back", s.Reclaimed)
			}
			return ""
		})
		for _, rows := range leaked {
			for rows.Next() {
			}
			if err := rows.Err(); !errors.Is(err, partition.ErrReclaimed) {
				t.Errorf("the late holder got %v", err)
			}
			rows.Close()
		}
	})
}

func TestTransactionTakenBackIsRolledBackAndSaysSo(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		w := watch(t, tg, pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 1, MaxHold: 500 * ms, AcquireTimeout: 5 * time.Second}))
		batch, table := in(workload.Batch), w.table("id int")
		tx, err := w.db.BeginTx(batch, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("INSERT INTO " + table + " VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		if n := ask(t, batch, w.db, "SELECT count(*) FROM "+table); n != "0" {
			t.Errorf("the next borrower sees %s rows", n)
		}
		if _, err := tx.Exec("INSERT INTO " + table + " VALUES (2)"); !errors.Is(err, partition.ErrReclaimed) {
			t.Errorf("Exec: %v", err)
		}
		if err := tx.Commit(); !errors.Is(err, partition.ErrReclaimed) {
			t.Errorf("Commit: %v", err)
		}
		if n := ask(t, batch, w.db, "SELECT count(*) FROM "+table); n != "0" {
			t.Errorf("%s rows are left", n)
		}
	})
}

func TestRunningStatementTakenBackIsEndedOnTheServer(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		w := watch(t, tg, pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 1, MaxHold: 500 * ms, StatementTimeout: partition.NoTimeout}))
		began := time.Now()
		_, err := w.db.ExecContext(in(workload.Batch), tg.slow)
		if !errors.Is(err, partition.ErrReclaimed) {
			t.Errorf("got %v", err)
		}
		between(t, "the holder's return", time.Since(began), 490*ms, 800*ms)
		w.gone(2 * time.Second)
	})
}

func TestLongHeldConnectionIsNotTakenBack(t *testing.T) {
	on(t, []target{pgx}, func(t *testing.T, tg target) {
		w := watch(t, tg, pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 2, MaxHold: 100 * ms, LeakAfter: 50 * ms}))
		ctx := workload.LongHeld(in(workload.Batch))
		c, err := w.db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		pid := ask(t, ctx, c, tg.session)
		time.Sleep(time.Second)
		if again := ask(t, ctx, c, tg.session); again != pid {
			t.Errorf("session %s became %s", pid, again)
		}
		if s := w.stats(workload.Batch); s.Leaked+s.Reclaimed != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestDrainLeavesNothingOnTheServer(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		w := watch(t, tg, pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 3, StatementTimeout: partition.NoTimeout}))
		batch, done := in(workload.Batch), make(chan error, 1)
		tx, err := w.db.BeginTx(batch, nil)
		if err != nil {
			t.Fatal(err)
		}
		ask(t, oltp, w.db, "SELECT 5")
		go func() {
			_, err := w.db.ExecContext(batch, tg.slow)
			done <- err
		}()
		eventually(t, 2*time.Second, func() string {
			if _, running := w.sessions(); running != 1 {
				return "the statement does not run yet"
			}
			return ""
		})
		ctx, cancel := context.WithTimeout(context.Background(), 300*ms)
		defer cancel()
		if err := w.reg.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain: %v", err)
		}
		if err := <-done; !errors.Is(err, partition.ErrReclaimed) {
			t.Errorf("the statement: %v", err)
		}
		if err := tx.Commit(); !errors.Is(err, partition.ErrReclaimed) {
			t.Errorf("Commit: %v", err)
		}
		eventually(t, time.Second, func() string {
			if all, _ := w.sessions(); all > 0 {
				return fmt.Sprintf("%d sessions are left", all)
			}
			return ""
		})
		if _, err := w.db.ExecContext(oltp, "SELECT 5"); err == nil || errors.Is(err, partition.ErrRejected) {
			t.Errorf("after Drain: %v", err)
		}
	})
}

func TestNestedAcquireIsToldSoAndManyJobsUnderOneContextAreNot(t *testing.T) {
	on(t, []target{pgx}, func(t *testing.T, tg target) {
		w := watch(t, tg, pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 1, MaxWaiting: 5, AcquireTimeout: 300 * ms}))
		nested := func(ctx context.Context) bool {
			_, err := w.db.ExecContext(ctx, "SELECT 5")
			var refused *partition.AcquireError
			if !errors.As(err, &refused) {
				t.Fatalf("not refused: %v", err)
			}
			if len(refused.Holders) != 1 || refused.Holders[0].Tag != workload.Batch || refused.LimitedBy != partition.LimitedByPermits {
				t.Errorf("blamed: %+v", refused)
			}
			return refused.Nested
		}
		request := in(workload.Batch)
		tx, err := w.db.BeginTx(request, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !nested(request) {
			t.Error("a request that waits for itself was not told")
		}
		if nested(in(workload.Batch)) {
			t.Error("another request was told that it holds a connection")
		}
		var jobs sync.WaitGroup
		for range 3 {
			jobs.Go(func() {
				if nested(request) {
					t.Error("one of several jobs was told that it waits for itself")
				}
			})
		}
		jobs.Wait()
		if h := w.reg.Holders(); len(h) != 1 || h[0].Activity != "idle in transaction" {
			t.Errorf("holders: %+v", h)
		}
		tx.Rollback()
	})
}
