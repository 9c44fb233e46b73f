package partition_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// poolerDialect has transactions begin with a text of the fake's.
type poolerDialect struct {
	stmttimeout.Dialect
	begin string
}

func (d poolerDialect) Setup(_ context.Context, _ stmttimeout.Session, want stmttimeout.Settings) (stmttimeout.Applied, error) {
	return stmttimeout.Applied{
		Enforcement:      stmttimeout.EnforcedByTransaction,
		StatementTimeout: want.StatementTimeout,
		Transaction:      []string{d.begin},
	}, nil
}

func behindPooler(begin string) partition.Option {
	return partition.WithDialect(poolerDialect{stmttimeout.Postgres(stmttimeout.TransactionPooling()), begin})
}

func TestTransactionIsSetUpBeforeItsFirstStatement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), limited(200*ms), behindPooler("ok set-up"))
		tx, err := r.db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("ok mine"); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range r.server.Calls(fakedb.Begin, fakedb.Exec, fakedb.Commit) {
			got = append(got, strings.TrimSpace(string(c.Kind)+" "+c.Text))
		}
		if want := "begin, exec ok set-up, exec ok mine, commit"; strings.Join(got, ", ") != want {
			t.Errorf("%v, want %s", got, want)
		}
		r.idle()
	})
}

func TestGuardLeavesTheServerItsGraceInATransactionAlone(t *testing.T) {
	t.Parallel()
	const limit, grace = 200 * ms, 500 * ms
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), limited(limit), size(workload.OLTP, 1), behindPooler("ok"))
		conn, err := r.db.Conn(oltp)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := conn.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("sleep 400ms"); err != nil {
			t.Errorf("within the grace: %v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = conn.ExecContext(oltp, "sleep 400ms")
		if took := time.Since(began); !errors.Is(err, stmttimeout.ErrExceeded) || took != limit {
			t.Errorf("after the transaction: %v after %v", err, took)
		}
		conn.Close()
		if tx, err = r.db.BeginTx(oltp, nil); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		_, err = tx.Exec("sleep 2s")
		if took := time.Since(began); !errors.Is(err, stmttimeout.ErrExceeded) || took != limit+grace {
			t.Errorf("in a transaction: %v after %v", err, took)
		}
		tx.Rollback()
		synctest.Wait()
		r.idle()
	})
}

func TestTransactionThatCannotBeSetUpIsRolledBack(t *testing.T) {
	t.Parallel()
	for begin, guarded := range map[string]bool{"error 42501": false, "hang": true} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), limited(200*ms), size(workload.OLTP, 1), behindPooler(begin))
			_, err := r.db.BeginTx(oltp, nil)
			var own *fakedb.Error
			if guarded != errors.Is(err, stmttimeout.ErrExceeded) || !guarded && !errors.As(err, &own) {
				t.Errorf("%s: %v", begin, err)
			}
			synctest.Wait()
			if n := len(r.server.Calls(fakedb.Rollback)); n != 1 {
				t.Errorf("%s: %d rollbacks", begin, n)
			}
			if s := r.server.Stats(); s.Open != 0 {
				t.Errorf("%s: %d connections are kept", begin, s.Open)
			}
			r.idle()
		})
	}
}

func TestEnforcementIsLoggedOncePerPool(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := setup(t, fakedb.New(), size(workload.OLTP, 3), behindPooler("ok"), partition.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	r.fill(workload.OLTP, 3)
	r.fill(workload.Batch, 1)
	r.db.Close() // it waits for the log
	for _, pool := range []string{"oltp", "batch"} {
		if n := strings.Count(log.String(), "pool="+pool+" enforcement=transaction"); n != 1 {
			t.Errorf("%s: %d lines\n%s", pool, n, log.String())
		}
	}
}

func TestConfiguredPoolerIsTheDialectForIt(t *testing.T) {
	t.Parallel()
	server := fakedb.New()
	r := setup(t, server, partition.WithConfig(partition.Config{Pooler: "transaction"}))
	if err := r.db.PingContext(oltp); err == nil {
		t.Fatal("the fake has no pg_settings")
	}
	calls := server.Calls(fakedb.Query)
	if len(calls) == 0 || !strings.Contains(calls[0].Text, "pg_settings") {
		t.Errorf("asked %v", calls)
	}
	if _, err := partition.OpenDB(server.Connector(), partition.WithConfig(partition.Config{Pooler: "session"})); err == nil ||
		err.Error() != `partition: Pooler must be "transaction", got "session"` {
		t.Errorf("got %v", err)
	}
}
