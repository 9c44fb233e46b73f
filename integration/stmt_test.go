package integration

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// P03: database/sql holds a connection's lock for a whole driver call, and a result takes it, too. A report on what was
// the result's connection would hold it up.
func TestKeptResultDoesNotWaitForAReport(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r := setup(t, tg)
		table := r.table("n int")
		for range 3 {
			r.exec(reporting, "SELECT 1") // the report finds an open connection, and needs none of the facade's
			res, err := r.db.ExecContext(oltp, "INSERT INTO "+table+" VALUES (1), (2)")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(reporting)
			done := make(chan struct{})
			go func() {
				defer close(done)
				r.db.ExecContext(ctx, tg.slow)
			}()
			r.busy(workload.Reporting, 1)
			time.Sleep(20 * ms) // the report is past its acquire
			began := time.Now()
			if n, err := res.RowsAffected(); n != 2 || err != nil {
				t.Errorf("RowsAffected: %d, %v", n, err)
			}
			between(t, "RowsAffected", time.Since(began), 0, 0)
			cancel()
			<-done
		}
	})
}

// busy waits until n permits of a pool are out and its connections made.
func (r *rig) busy(name workload.Name, n int) {
	r.Helper()
	eventually(r, 10*time.Second, func() string {
		if s := r.stats(name); s.InUse != n || s.Open < n {
			return fmt.Sprintf("pool %s: in use %d of %d open, want %d", name, s.InUse, s.Open, n)
		}
		return ""
	})
}

// P04
func TestClosingAStatementDoesNotWaitForAReport(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r := setup(t, tg)
		ctx, cancel := context.WithCancel(reporting)
		var reports sync.WaitGroup
		defer reports.Wait()
		defer cancel()
		for range 2 {
			reports.Go(func() {
				for ctx.Err() == nil {
					r.db.ExecContext(ctx, halfSecond(tg))
				}
			})
		}
		r.busy(workload.Reporting, 2)
		var longest time.Duration
		for began := time.Now(); time.Since(began) < 2*time.Second; {
			stmt, err := r.db.PrepareContext(oltp, "SELECT 1")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * ms)
			closing := time.Now()
			if err := stmt.Close(); err != nil {
				t.Error(err)
			}
			longest = max(longest, time.Since(closing))
		}
		// Waiting for a report would show as some 0.4 s.
		if longest > 300*ms {
			t.Errorf("a Close took %v", longest)
		}
	})
}

func halfSecond(tg target) string {
	if tg.arg == "?" {
		return "SELECT count(*) FROM seq_1_to_5 WHERE SLEEP(0.1) = 0"
	}
	return "SELECT pg_sleep(0.5)"
}

// P06
func TestStatementRecoversFromWhatMadeItInvalidAsPlain(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		changes := []string{"ALTER TABLE %s ADD COLUMN added%d int", "DEALLOCATE ALL -- %s %d", "DISCARD ALL -- %s %d"}
		if tg.arg == "?" {
			changes = changes[:1]
		}
		r := setup(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1}))
		for _, tw := range r.twins() {
			tw.db.SetMaxOpenConns(map[string]int{"plain": 1}[tw.name])
			table := r.table("n int")
			r.exec(oltp, "INSERT INTO "+table+" VALUES (1)")
			for i, change := range changes {
				recovers(t, tw, "SELECT * FROM "+table, fmt.Sprintf(change, table, i))
			}
		}
	})
}

// recovers prepares a statement, changes the world under it, and goes on until it works: what the error between is, and
// whether there is one, is the driver's business.
func recovers(t *testing.T, tw twin, query, change string) {
	t.Helper()
	use := func(stmt *sql.Stmt) error { return allRows(stmt.QueryContext(oltp)) }
	stmt, err := tw.db.PrepareContext(oltp, query)
	if err != nil {
		t.Fatal(err)
	}
	if err := use(stmt); err != nil {
		t.Fatal(err)
	}
	if _, err := tw.db.ExecContext(oltp, change); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, after %s: %v", tw.name, change, use(stmt))
	if err := stmt.Close(); err != nil {
		t.Logf("%s, Close: %v", tw.name, err)
	}
	if stmt, err = tw.db.PrepareContext(oltp, query); err != nil {
		t.Errorf("%s, after %s: Prepare: %v", tw.name, change, err)
		return
	}
	defer stmt.Close()
	if err := use(stmt); err != nil {
		t.Errorf("%s, after %s: a new statement: %v", tw.name, change, err)
	}
}

// One statement, prepared once, runs in the pool of each context.
func TestStatementFollowsTheContextOfEachCall(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r := setup(t, tg, pool("four", partition.PoolConfig{MaxOpenConns: 1, StatementTimeout: 4 * time.Second, AcquireTimeout: 10 * time.Second}))
		stmt, err := r.db.Prepare(tg.limit)
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		for range 3 {
			for name, want := range map[workload.Name][2]string{"four": {"4s", "4"}, workload.OLTP: {"5s", "5"}} {
				var got string
				if err := stmt.QueryRowContext(in(name)).Scan(&got); err != nil || got != want[0] && got != want[1] {
					t.Errorf("under %s the limit is %q, %v", name, got, err)
				}
			}
		}
	})
}

// P16. Not parallel: it measures the heap of the process.
func TestManyStatementsOnManyConnectionsCostAtMostTwiceThePlainHeap(t *testing.T) {
	const statements = 1000
	conns := 64
	if underRace {
		conns = 12 // the heap grows evenly with them
	}
	r := setup(t, sqlite, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: conns, MaxWaiting: conns}))
	plain := r.plain()
	plain.SetMaxIdleConns(conns)
	// What other tests have left may be given up meanwhile, which makes it less: the larger of two counts.
	want := max(heapOf(t, plain, statements, conns), heapOf(t, plain, statements, conns))
	got := max(heapOf(t, r.db, statements, conns), heapOf(t, r.db, statements, conns))
	t.Logf("heap of %d statements on %d connections: plain %d KB, partitioned %d KB", statements, conns, want>>10, got>>10)
	if got > 2*want {
		t.Errorf("heap %d, more than twice the %d of plain", got, want)
	}
}

// heapOf is what the statements cost once each of them has run on each of the connections.
func heapOf(t *testing.T, db *sql.DB, statements, conns int) int64 {
	t.Helper()
	before := heap()
	prepared := make([]*sql.Stmt, statements)
	for i := range prepared {
		var err error
		if prepared[i], err = db.Prepare(fmt.Sprintf("SELECT %d", i)); err != nil {
			t.Fatal(err)
		}
		defer prepared[i].Close()
	}
	txs := make([]*sql.Tx, conns)
	for i := range txs {
		var err error
		if txs[i], err = db.BeginTx(oltp, nil); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for _, tx := range txs {
		all.Go(func() { runAll(t, tx, prepared) })
	}
	all.Wait()
	used := heap() - before
	runtime.KeepAlive(prepared)
	return used
}

func runAll(t *testing.T, tx *sql.Tx, stmts []*sql.Stmt) {
	for i, stmt := range stmts {
		var n int
		if err := tx.StmtContext(oltp, stmt).QueryRowContext(oltp).Scan(&n); err != nil || n != i {
			t.Errorf("statement %d gave %d, %v", i, n, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
