package integration

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// entries are the ways into a *sql.DB; stmt was prepared before.
var entries = map[string]func(ctx context.Context, db *sql.DB, stmt *sql.Stmt) error{
	"Exec": func(ctx context.Context, db *sql.DB, _ *sql.Stmt) error {
		_, err := db.ExecContext(ctx, "SELECT 1")
		return err
	},
	"Query": func(ctx context.Context, db *sql.DB, _ *sql.Stmt) error {
		return allRows(db.QueryContext(ctx, "SELECT 1"))
	},
	"QueryRow": func(ctx context.Context, db *sql.DB, _ *sql.Stmt) error {
		var n int
		return db.QueryRowContext(ctx, "SELECT 1").Scan(&n)
	},
	"Prepare": func(ctx context.Context, db *sql.DB, _ *sql.Stmt) error {
		return prepared(ctx, db, "SELECT 1", func(s *sql.Stmt) error { return nil })
	},
	"Stmt.Query": func(ctx context.Context, _ *sql.DB, stmt *sql.Stmt) error {
		return allRows(stmt.QueryContext(ctx))
	},
	"Begin": func(ctx context.Context, db *sql.DB, _ *sql.Stmt) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		return tx.Rollback()
	},
	"Conn": func(ctx context.Context, db *sql.DB, _ *sql.Stmt) error {
		c, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		return c.Close()
	},
	"Ping": func(ctx context.Context, db *sql.DB, _ *sql.Stmt) error { return db.PingContext(ctx) },
}

// idleConns is how many dead connections each handle has: more than the two that database/sql tries before a new one.
const idleConns = 3

// subject is one handle, and the one entry that is used on it after a restart.
type subject struct {
	entry string
	twin
	stmt *sql.Stmt
}

// P07: over several restarts, with every idle connection dead, plain and partitioned side by side.
func TestNoCallFailsAfterARestartThatPlainWouldHaveServed(t *testing.T) {
	for name, c := range map[string]struct {
		start   func(testing.TB) *testserver.Server
		targets []target
	}{
		"PostgreSQL": {testserver.StartPostgres, postgresTargets},
		"MariaDB":    {testserver.StartMariaDB, []target{mariadb}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := c.start(t)
			dsn := server.DSN
			if name == "PostgreSQL" {
				dsn = cheap(t, dsn)
			}
			for _, tg := range c.targets {
				t.Run(tg.name, func(t *testing.T) { restarts(t, server, dsn, tg) })
			}
		})
	}
}

func restarts(t *testing.T, server *testserver.Server, dsn string, tg target) {
	var subjects []subject
	for _, entry := range slices.Sorted(keys(entries)) {
		r := setupOn(t, tg, dsn, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: idleConns, MaxWaiting: 50}))
		for _, tw := range r.twins() {
			tw.db.SetMaxIdleConns(map[string]int{"plain": idleConns, "partitioned": 10 * idleConns}[tw.name])
			stmt, err := tw.db.Prepare("SELECT 1")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { stmt.Close() })
			subjects = append(subjects, subject{entry, tw, stmt})
		}
	}
	for round := range 3 {
		for _, s := range subjects {
			fill(t, s.db, s.stmt)
		}
		// pgx looks whether a connection still lives only after it was idle for a second; before that plain loses calls, too.
		idle := time.After(1100 * ms)
		if round == 1 {
			server.Kill()
			server.Start()
		} else {
			server.Restart()
		}
		<-idle
		failed := make(map[string]int)
		for _, s := range subjects {
			for range idleConns + 1 {
				err := entries[s.entry](oltp, s.db, s.stmt)
				if err == nil {
					continue
				}
				failed[s.entry+" "+s.name]++
				t.Logf("round %d: %s, %s: %v", round, s.entry, s.name, err)
			}
		}
		for entry := range entries {
			if plain, ours := failed[entry+" plain"], failed[entry+" partitioned"]; ours > plain {
				t.Errorf("round %d: %s failed %d times, plain %d times", round, entry, ours, plain)
			}
		}
	}
}

// fill leaves idleConns connections idle, on each of which stmt is prepared.
func fill(t *testing.T, db *sql.DB, stmt *sql.Stmt) {
	t.Helper()
	var txs []*sql.Tx
	for range idleConns {
		tx, err := db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		txs = append(txs, tx)
	}
	for _, tx := range txs {
		if err := allRows(tx.StmtContext(oltp, stmt).QueryContext(oltp)); err != nil {
			t.Fatal(err)
		}
	}
}

// entriesThatSurvive are those that plain database/sql serves with another connection where the first is dead. It does not
// retry a Ping, and lib/pq notices a dead connection no sooner than that.
func entriesThatSurvive(tg target) []string {
	return slices.DeleteFunc(slices.Sorted(keys(entries)), func(entry string) bool { return entry == "Ping" && tg.name == "pq" })
}

// P07: the one idle connection is dead, and all others are in use.
func TestDeadConnectionOfASaturatedPoolIsReplacedUnderItsPermit(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r := setup(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 3}))
		admin := r.plain()
		for _, entry := range entriesThatSurvive(tg) {
			stmt, err := r.db.Prepare("SELECT 1")
			if err != nil {
				t.Fatal(err)
			}
			conns, giveBack := r.take(oltp, 3)
			session := ask(t, oltp, conns[0], tg.session)
			if tg.name == "pgx" {
				time.Sleep(1100 * ms) // see above
			}
			killSession(t, admin, tg, session)
			// The dead one goes back to a pool that has no other, perhaps with somebody waiting for it.
			conns[0].Close()
			for range 2 {
				if err := entries[entry](oltp, r.db, stmt); err != nil {
					t.Errorf("%s: %v", entry, err)
				}
			}
			if s := r.stats(workload.OLTP); s.PeakInUse > 3 || s.RejectedTimeout+s.RejectedQueueFull != 0 {
				t.Errorf("%s: %+v", entry, s)
			}
			giveBack()
			stmt.Close()
		}
	})
}

// P07: the dead connection is handed to somebody who waits for it.
func TestWaiterThatIsHandedADeadConnectionIsServed(t *testing.T) {
	on(t, []target{pq, mariadb}, func(t *testing.T, tg target) {
		r := setup(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1}))
		admin := r.plain()
		for _, entry := range entriesThatSurvive(tg) {
			stmt, err := r.db.Prepare("SELECT 1")
			if err != nil {
				t.Fatal(err)
			}
			conns, giveBack := r.take(oltp, 1)
			session := ask(t, oltp, conns[0], tg.session)
			done := make(chan error)
			go func() { done <- entries[entry](oltp, r.db, stmt) }()
			eventually(t, 10*time.Second, func() string {
				if r.stats(workload.OLTP).Waiting != 1 {
					return "nobody waits"
				}
				return ""
			})
			killSession(t, admin, tg, session)
			giveBack()
			if err := <-done; err != nil {
				t.Errorf("%s: %v", entry, err)
			}
			stmt.Close()
		}
	})
}

// A statement timeout, a rejection and a dead server are three different things.
func TestStoppedServerIsNoRejection(t *testing.T) {
	t.Parallel()
	for _, tg := range []target{pgx, mariadb} {
		t.Run(tg.name, func(t *testing.T) {
			t.Parallel()
			server := starts[tg.driver](t)
			r := setupOn(t, tg, server.DSN)
			r.exec(oltp, "SELECT 1")
			server.Stop()
			if err := r.db.PingContext(oltp); err == nil || errors.Is(err, partition.ErrRejected) {
				t.Errorf("got %v, want the driver's error", err)
			}
			server.Start()
			if err := r.db.PingContext(oltp); err != nil {
				t.Errorf("after the start: %v", err)
			}
		})
	}
}
