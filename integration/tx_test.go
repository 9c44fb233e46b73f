package integration

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// C06
func TestIsolationAndReadOnlyReachTheServer(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		r := setup(t, tg)
		tx, err := r.db.BeginTx(oltp, &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if got := ask(t, oltp, tx, "SHOW transaction_isolation"); got != "serializable" {
			t.Errorf("transaction_isolation %s", got)
		}
		if got := ask(t, oltp, tx, "SHOW transaction_read_only"); got != "on" {
			t.Errorf("transaction_read_only %s", got)
		}
	})
}

// C06
func TestSnapshotIsolationIsAnsweredAsByTheDriver(t *testing.T) {
	on(t, allTargets, func(t *testing.T, tg target) {
		r := setup(t, tg)
		twins := r.twins()
		want, got := snapshot(twins[0].db, tg), snapshot(twins[1].db, tg)
		if got != want {
			t.Errorf("%q, plain %q", got, want)
		}
		if tg.name == "pgx" && got != "repeatable read" {
			t.Errorf("%q, want repeatable read", got)
		}
		if tg.name != "pgx" && tg.name != "sqlite" && got == "" {
			t.Error("no error")
		}
	})
}

// snapshot is the isolation that LevelSnapshot becomes, or the error.
func snapshot(db *sql.DB, tg target) (level string) {
	tx, err := db.BeginTx(oltp, &sql.TxOptions{Isolation: sql.LevelSnapshot})
	if err != nil {
		return err.Error()
	}
	defer tx.Rollback()
	if tg.name == "pgx" {
		err = tx.QueryRowContext(oltp, "SHOW transaction_isolation").Scan(&level)
	}
	if err != nil {
		return err.Error()
	}
	return level
}

// C22
func TestTransactionStaysOnItsConnectionWhateverTheTagOfItsStatements(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r := setup(t, tg)
		stmt, err := r.db.Prepare(tg.session)
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		inTx(t, oltp, r.db, func(tx *sql.Tx) {
			home := ask(t, oltp, tx, tg.session)
			if got := ask(t, reporting, tx, tg.session); got != home {
				t.Errorf("under another tag the session is %s, not %s", got, home)
			}
			var got string
			if err := tx.StmtContext(reporting, stmt).QueryRowContext(reporting).Scan(&got); err != nil || got != home {
				t.Errorf("the statement ran on session %s, %v, not %s", got, err, home)
			}
		})
		if s := r.stats(workload.Reporting); s.Acquired != 0 {
			t.Errorf("the reporting pool has served %d acquires", s.Acquired)
		}
	})
}

// C31
func TestTransactionWhoseDeadlinePassedLeavesNothingToTheNextBorrower(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r := setup(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1}))
		table := r.table("id int")
		r.exec(oltp, "SELECT 1") // the deadline is not for the dial
		ctx, cancel := context.WithTimeout(oltp, 200*ms)
		defer cancel()
		tx, err := r.db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+table+" VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * ms)
		if got := ask(t, oltp, r.db, "SELECT count(*) FROM "+table); got != "0" {
			t.Errorf("%s rows of a transaction that was not committed", got)
		}
		if err := tx.Commit(); err == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("Commit: %v", err)
		}
		conns, giveBack := r.take(oltp, 1)
		defer giveBack()
		if tg.arg != "$1" {
			if got := ask(t, oltp, conns[0], "SELECT @@in_transaction"); got != "0" {
				t.Error("the new borrower is in a transaction")
			}
			return
		}
		pid := ask(t, oltp, conns[0], tg.session)
		if got := ask(t, in(workload.Admin), r.db, "SELECT state FROM pg_stat_activity WHERE pid = "+pid); got != "idle" {
			t.Errorf("the new borrower's session is %s", got)
		}
		r.noBackend("state LIKE 'idle in transaction%' AND query LIKE '%" + table + "%'")
	})
}

// noBackend fails the test unless no session of the server is like this, for a session of a closed connection soon.
func (r *rig) noBackend(like string) {
	r.Helper()
	eventually(r, 10*time.Second, func() string {
		if n := ask(r, in(workload.Admin), r.db, "SELECT count(*) FROM pg_stat_activity WHERE "+like); n != "0" {
			return n + " sessions: " + like
		}
		return ""
	})
}
