package partition_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestPreparedStatementFollowsTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		stmt := r.mustPrepare(oltp, "id")
		defer stmt.Close()
		ids := make(map[workload.Name]int)
		for range 3 {
			for _, name := range []workload.Name{workload.OLTP, workload.Reporting, workload.Batch} {
				var id int
				if err := stmt.QueryRowContext(in(name)).Scan(&id); err != nil {
					t.Fatal(err)
				}
				if ids[name] != 0 && ids[name] != id {
					t.Errorf("%s ran on connection %d, then %d", name, ids[name], id)
				}
				ids[name] = id
			}
		}
		if len(ids) != 3 || ids[workload.OLTP] == ids[workload.Reporting] || ids[workload.Batch] == ids[workload.OLTP] {
			t.Errorf("connections %v", ids)
		}
	})
}

func TestStatementIsPreparedOncePerConnectionAndReused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		stmt := r.mustPrepare(oltp, "ok")
		for range 100 {
			if _, err := stmt.ExecContext(oltp); err != nil {
				t.Fatal(err)
			}
		}
		if n := r.server.Stats().Prepared; n != 1 {
			t.Errorf("prepared %d times", n)
		}
		stmt.Close()
		r.mustExec(oltp, "ok")
		if s := r.server.Stats(); s.StmtsClosed != s.Prepared {
			t.Errorf("after Close and the connection's next use: prepared %d, closed %d", s.Prepared, s.StmtsClosed)
		}
	})
}

func TestClosedStatementIsDeallocatedOnEveryConnectionAtItsNextUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		stmt := r.mustPrepare(oltp, "sleep 10ms")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := stmt.ExecContext(oltp); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := r.server.Stats().Prepared; n != 8 {
			t.Errorf("prepared on %d connections, want 8", n)
		}
		stmt.Close()
		r.fill(workload.OLTP, 8)
		if s := r.server.Stats(); s.StmtsClosed != 8 {
			t.Errorf("closed %d of 8", s.StmtsClosed)
		}
	})
}

func TestSyntaxErrorComesOutOfPrepare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		if _, err := r.db.PrepareContext(oltp, "selekt"); err == nil {
			t.Error("Prepare accepted it")
		}
		r.idle()
	})
}

func TestStatementsOfATransactionAndOfTheHandleWorkTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		stmt := r.mustPrepare(oltp, "id")
		defer stmt.Close()
		tx, err := r.db.BeginTx(reporting, nil)
		if err != nil {
			t.Fatal(err)
		}
		var viaStmt, direct int
		if err := tx.Stmt(stmt).QueryRow().Scan(&viaStmt); err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRow("id").Scan(&direct); err != nil {
			t.Fatal(err)
		}
		if viaStmt != direct {
			t.Errorf("tx.Stmt ran on connection %d, the transaction is on %d", viaStmt, direct)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	})
}

// P05: the fake, like SQLite, has one cursor per prepared statement.
func TestTwoLoopsOverOneTextDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		tx, err := r.db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		one, _ := tx.Prepare("rows 3")
		two, _ := tx.Prepare("rows 3")
		outer, err := one.Query()
		if err != nil {
			t.Fatal(err)
		}
		pairs := 0
		for outer.Next() {
			for _, stmt := range []*sql.Stmt{two, one} {
				inner, err := stmt.Query()
				if err != nil {
					t.Fatal(err)
				}
				for inner.Next() {
					pairs++
				}
				inner.Close()
			}
		}
		if pairs != 18 || outer.Err() != nil {
			t.Errorf("%d of 18 pairs, %v", pairs, outer.Err())
		}
	})
}

// P06
func TestStatementThatFailedIsPreparedAnew(t *testing.T) {
	t.Parallel()
	for _, spoil := range []string{"alter", "deallocate all", "discard all"} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), size(workload.OLTP, 1))
			stmt := r.mustPrepare(oltp, "ok")
			stmt.ExecContext(oltp)
			r.mustExec(oltp, spoil)
			if _, err := stmt.ExecContext(oltp); err == nil {
				t.Errorf("%s: the fake did not spoil it", spoil)
			}
			if _, err := stmt.ExecContext(oltp); err != nil {
				t.Errorf("%s: not healed: %v", spoil, err)
			}
			stmt.Close()
			again := r.mustPrepare(oltp, "ok")
			defer again.Close()
			if _, err := again.ExecContext(oltp); err != nil {
				t.Errorf("%s: closed and prepared again: %v", spoil, err)
			}
		})
	}
}

// C34, and with it every driver that leaves plain queries to prepared statements.
func TestSkippedQueryIsOneStatementAndLeavesNothingPrepared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		for range 10 {
			var v int
			if err := r.db.QueryRowContext(oltp, "skip; id").Scan(&v); err != nil {
				t.Fatal(err)
			}
			r.mustExec(oltp, "skip")
		}
		s := r.server.Stats()
		if s.Prepared != 20 || s.StmtsClosed != 20 {
			t.Errorf("prepared %d, closed %d, want 20 each as plain", s.Prepared, s.StmtsClosed)
		}
		if got := r.stats(workload.OLTP).Acquired; got != 20 {
			t.Errorf("%d acquires for 20 statements", got)
		}
	})
}

func TestCacheOfPreparedStatementsIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(fakedb.WithoutLog()), size(workload.OLTP, 1))
		stmts := make([]*sql.Stmt, 2000)
		for i := range stmts {
			var err error
			if stmts[i], err = r.db.PrepareContext(oltp, fmt.Sprintf("ok %d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if s := r.server.Stats(); s.Prepared-s.StmtsClosed > 512 {
			t.Errorf("%d prepared at once on one connection", s.Prepared-s.StmtsClosed)
		}
		for _, stmt := range stmts {
			if _, err := stmt.ExecContext(oltp); err != nil {
				t.Fatal(err)
			}
			stmt.Close()
		}
		r.mustExec(oltp, "ok")
		if s := r.server.Stats(); s.Prepared != s.StmtsClosed {
			t.Errorf("%d left prepared", s.Prepared-s.StmtsClosed)
		}
	})
}

func TestStatementClosedWhileInUseEndsItsRowsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		stmt := r.mustPrepare(oltp, "rows 5")
		rows, err := stmt.QueryContext(oltp)
		if err != nil {
			t.Fatal(err)
		}
		rows.Next()
		stmt.Close()
		n := 1
		for rows.Next() {
			n++
		}
		if n != 5 || rows.Err() != nil {
			t.Errorf("%d rows, %v", n, rows.Err())
		}
		r.mustExec(oltp, "ok")
		if s := r.server.Stats(); s.Prepared != s.StmtsClosed {
			t.Errorf("prepared %d, closed %d", s.Prepared, s.StmtsClosed)
		}
	})
}

// P03
func TestResultKeptByItsCallerIsNotHeldUpByAnotherPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		res, err := r.db.ExecContext(oltp, "ok")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { r.db.ExecContext(reporting, "sleep 2s") })
		}
		synctest.Wait()
		began := time.Now()
		if _, err := res.RowsAffected(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("RowsAffected took %v", took)
		}
		all.Wait()
	})
}

// P04
func TestStatementCloseNeverWaitsForAReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		ctx, stop := context.WithCancel(reporting)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					r.db.ExecContext(ctx, "sleep 500ms")
				}
			})
		}
		for range 200 {
			stmt := r.mustPrepare(oltp, "ok")
			time.Sleep(2 * ms)
			began := time.Now()
			stmt.Close()
			if took := time.Since(began); took != 0 {
				t.Fatalf("Close took %v", took)
			}
		}
		stop()
		all.Wait()
	})
}

func TestDeadConnectionFoundByAPreparedStatementIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		stmt := r.mustPrepare(oltp, "ok")
		defer stmt.Close()
		r.fill(workload.OLTP, 6)
		r.server.KillAll()
		for range 6 {
			if _, err := stmt.ExecContext(oltp); err != nil {
				t.Error(err)
			}
		}
	})
}

// Optional interfaces of a driver, switched off in turn: every entry point and every statement goes on working.
// A driver that cannot both reset and validate loses the connection of a transaction whose context ended.
// P16
func TestManyStatementsOnManyConnectionsCostLittleMoreThanPlain(t *testing.T) {
	const statements, conns = 1000, 64
	collect := func() {
		for range 5 { // what others have left goes with the first; what finalizers and ending goroutines held, later
			runtime.GC()
			runtime.Gosched()
		}
	}
	heap := func(db *sql.DB) int64 {
		defer db.Close()
		var before, after runtime.MemStats
		collect()
		runtime.ReadMemStats(&before)
		held := make([]*sql.Stmt, statements)
		for i := range held {
			var err error
			if held[i], err = db.PrepareContext(oltp, fmt.Sprintf("ok %d", i)); err != nil {
				t.Fatal(err)
			}
		}
		all := make([]*sql.Conn, conns)
		for i := range all {
			all[i], _ = db.Conn(oltp)
		}
		for _, c := range all {
			tx, err := c.BeginTx(oltp, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, stmt := range held {
				if _, err := tx.Stmt(stmt).Exec(); err != nil {
					t.Fatal(err)
				}
			}
			tx.Commit()
		}
		for _, c := range all {
			c.Close()
		}
		collect()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(held)
		return int64(after.HeapAlloc) - int64(before.HeapAlloc)
	}
	plain := func() *sql.DB {
		db := sql.OpenDB(fakedb.Null())
		db.SetMaxIdleConns(conns)
		return db
	}
	partitioned := func() *sql.DB { return partitionedNull(t, size(workload.OLTP, conns)) }
	// What others have left may be given up meanwhile, which makes it less: the larger of two counts.
	theirs, ours := max(heap(plain()), heap(plain())), max(heap(partitioned()), heap(partitioned()))
	t.Logf("heap of %d statements on %d connections: plain %d KiB, partitioned %d KiB", statements, conns, theirs>>10, ours>>10)
	if ours > 2*theirs {
		t.Errorf("partitioned takes %.1f × plain's memory", float64(ours)/float64(theirs))
	}
}

// go-sql-driver/mysql converts a statement's arguments by the statement itself, which may have to be prepared first.
func TestPreparingForTheArgumentsIsTheCallsOwnAndHasItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var seen any
		r := setup(t, fakedb.New(fakedb.WithStmtChecker(func(*sqldriver.NamedValue) error { return sqldriver.ErrSkip })),
			partition.WithPool(workload.OLTP, partition.PoolConfig{StatementTimeout: partition.NoTimeout}))
		tx, err := r.db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		stmt, err := tx.PrepareContext(oltp, "args ?")
		if err != nil {
			t.Fatal(err)
		}
		r.server.On(fakedb.Exec, fakedb.Fail(errors.New("duplicate key"))) // after which it is prepared anew
		if _, err := stmt.ExecContext(oltp, 1); err == nil {
			t.Fatal("no failure")
		}
		r.server.On(fakedb.Exec, nil)
		if _, err := stmt.ExecContext(oltp, func() {}); err == nil || err.Error() != "sql: converting argument $1 type: unsupported type func(), a func" {
			t.Errorf("a bad argument: %v", err)
		}
		r.server.On(fakedb.Prepare, func(ctx context.Context, c fakedb.Call) error {
			seen = ctx.Value(key{})
			return fakedb.Delay(time.Minute)(ctx, c)
		})
		ctx, cancel := within(context.WithValue(oltp, key{}, "shop"), 100*ms)
		defer cancel()
		began := time.Now()
		if _, err := stmt.ExecContext(ctx, 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 100*ms || seen != "shop" {
			t.Errorf("%v after %v, with the value %v", err, time.Since(began), seen)
		}
	})
}

func TestCancelledPrepareOfAKnownTextIsNotAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		conn, err := r.db.Conn(oltp)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, want := range []error{nil, context.Canceled} {
			ctx, cancel := context.WithCancel(oltp)
			if want != nil {
				cancel()
			}
			stmt, err := conn.PrepareContext(ctx, "ok")
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			if err == nil {
				defer stmt.Close()
			}
			cancel()
		}
	})
}
