package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// pooling is the mode for a pooler that lends its sessions by the transaction.
var pooling = partition.WithDialect(stmttimeout.Postgres(stmttimeout.TransactionPooling()))

// pooled is tg behind a PgBouncer of its own.
func pooled(tb testing.TB, tg target, settings ...string) target {
	tb.Helper()
	dsn := withExec(tb, tg, testserver.StartPgBouncer(tb, tg.dsn(tb), settings...).DSN)
	tg.dsn = func(testing.TB) string { return dsn }
	return tg
}

// withExec has pgx prepare nothing: until PgBouncer 1.21 nothing can be kept prepared behind it.
func withExec(tb testing.TB, tg target, dsn string) string {
	tb.Helper()
	if tg.name == "pgx" {
		return withParam(tb, dsn, "default_query_exec_mode", "exec")
	}
	return dsn
}

// C08
func TestLimitHoldsBehindAPoolerOfTransactions(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		const limit = 200 * ms
		direct := open(t, tg.driver, tg.dsn(t))
		r := setup(t, pooled(t, tg, "default_pool_size=2"), pooling, pool(workload.OLTP, partition.PoolConfig{StatementTimeout: limit}))
		if err := r.db.PingContext(oltp); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"Exec", "Query", "QueryRow", "Conn.Exec"} {
			began := time.Now()
			exceeded(t, path, paths[path](oltp, r.db, tg.slow+" -- C08 "+tg.name), limit, false)
			between(t, path, time.Since(began), limit, limit)
		}
		exceeded(t, "Tx.Query", paths["Tx.Query"](oltp, r.db, tg.slow), limit, true)
		eventually(t, 2*time.Second, func() string { // the driver's cancel went through the pooler
			return several(ask(t, oltp, direct, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%-- C08 "+
				tg.name+"' AND pid <> pg_backend_pid()"))
		})
		if got := r.stats(workload.OLTP).Enforcement; got != "transaction" {
			t.Errorf("enforcement %q", got)
		}
	})
}

func several(n string) string {
	if n == "0" {
		return ""
	}
	return n + " statements still run on the server"
}

// C09
func TestNothingReachesOtherClientsOfThePooler(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		behind := pooled(t, tg, "default_pool_size=1")
		r := setup(t, behind, pooling, pool(workload.OLTP, partition.PoolConfig{
			StatementTimeout: 321 * ms, LockTimeout: 123 * ms, IdleInTransactionTimeout: 9 * time.Second, ReadOnly: true,
		}))
		other := r.plain()
		settings := []string{
			"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "default_transaction_read_only", "application_name",
		}
		want := make(map[string]string)
		for _, s := range settings {
			want[s] = ask(t, oltp, other, "SHOW "+s)
		}
		session := ask(t, oltp, other, tg.session)
		for what, use := range map[string]func() error{
			"a statement":   func() error { _, err := r.db.ExecContext(oltp, "SELECT 1"); return err },
			"a transaction": func() error { return commit(r.db, "SELECT 1") },
			"a failed transaction": func() error {
				if commit(r.db, "SELECT 1/0") == nil {
					return errors.New("no error")
				}
				return nil
			},
			"a statement that the server ended": func() error {
				if err := commit(r.db, tg.slow); !errors.Is(err, stmttimeout.ErrExceeded) {
					return fmt.Errorf("%v, want ErrExceeded", err)
				}
				return nil
			},
		} {
			if err := use(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			for _, s := range settings {
				if got := ask(t, oltp, other, "SHOW "+s); got != want[s] {
					t.Errorf("after %s another client has %s %q, want %q", what, s, got, want[s])
				}
			}
		}
		if ask(t, oltp, other, tg.session) != session {
			t.Error("the clients did not share a session: the test shows nothing")
		}
	})
}

// commit runs a statement in a transaction.
func commit(db *sql.DB, query string) error {
	tx, err := db.BeginTx(oltp, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(oltp, query); err != nil {
		return err
	}
	return tx.Commit()
}

func TestTransactionBehindAPoolerHasThePoolsSettingsAndMayStillChooseItsOwn(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		r := setup(t, pooled(t, tg, "default_pool_size=2"), pooling, pool(workload.OLTP, partition.PoolConfig{
			StatementTimeout: 4321 * ms, LockTimeout: 123 * ms, IdleInTransactionTimeout: 9 * time.Second, ReadOnly: true,
		}))
		inTx(t, oltp, r.db, func(tx *sql.Tx) {
			for setting, want := range map[string]string{
				"statement_timeout": "4321ms", "lock_timeout": "123ms", "idle_in_transaction_session_timeout": "9s", "transaction_read_only": "on",
			} {
				if got := ask(t, oltp, tx, "SHOW "+setting); got != want {
					t.Errorf("%s is %s, want %s", setting, got, want)
				}
			}
		})
		snapshot, release := exportSnapshot(t, open(t, tg.driver, tg.dsn(t)))
		defer release()
		for _, own := range []struct{ first, show, want string }{
			{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE", "transaction_deferrable", "on"},
			{"SET TRANSACTION READ WRITE", "transaction_read_only", "off"},
			{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '" + snapshot + "'", "transaction_isolation", "repeatable read"},
			{"SET LOCAL statement_timeout = '1s'", "statement_timeout", "1s"},
		} {
			inTx(t, oltp, r.db, func(tx *sql.Tx) {
				if _, err := tx.ExecContext(oltp, own.first); err != nil {
					t.Fatalf("%s: %v", own.first, err)
				}
				if got := ask(t, oltp, tx, "SHOW "+own.show); got != own.want {
					t.Errorf("after %s: %s is %s", own.first, own.show, got)
				}
			})
		}
	})
}

// exportSnapshot keeps the transaction open that others may import.
func exportSnapshot(t *testing.T, db *sql.DB) (name string, release func()) {
	t.Helper()
	tx, err := db.BeginTx(oltp, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	return ask(t, oltp, tx, "SELECT pg_export_snapshot()"), func() { tx.Rollback() }
}

// One role per pool: what each session of the role begins with holds for every statement.
func TestRolesOwnLimitIsTheServersForEveryStatement(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		const limit = time.Second // far from the guard's, which lib/pq does not follow at once
		role := "reporter_" + tg.name
		dsn := withRole(t, tg, role, "statement_timeout = '1s'")
		tg.dsn = func(testing.TB) string { return dsn }
		behind := pooled(t, tg, "default_pool_size=1")
		for asked, want := range map[time.Duration]string{
			2 * limit: "role", limit: "role", partition.NoTimeout: "role", 100 * ms: "transaction",
		} {
			r := setup(t, behind, pooling, pool(workload.OLTP, partition.PoolConfig{StatementTimeout: asked}))
			err := paths["QueryRow"](oltp, r.db, tg.slow)
			switch {
			case asked == partition.NoTimeout:
				if !driversOwn(tg, err) {
					t.Errorf("no limit of ours: %v, want the server's", err)
				}
			case want == "role":
				exceeded(t, asked.String(), err, limit, true)
			default:
				exceeded(t, asked.String(), err, asked, false)
			}
			if got := r.stats(workload.OLTP).Enforcement; got != want {
				t.Errorf("%v: enforcement %q, want %q", asked, got, want)
			}
		}
	})
}

// withRole makes a role with a setting of its own until the test ends, and returns its DSN.
func withRole(t *testing.T, tg target, role, setting string) (dsn string) {
	t.Helper()
	admin := open(t, tg.driver, tg.dsn(t))
	mustExec(t, admin, "CREATE ROLE "+role+" LOGIN SUPERUSER PASSWORD '"+verifier("r")+"'")
	t.Cleanup(func() {
		if _, err := admin.Exec("DROP ROLE " + role); err != nil {
			t.Error(err)
		}
	})
	mustExec(t, admin, "ALTER ROLE "+role+" SET "+setting)
	u, err := url.Parse(tg.dsn(t))
	if err != nil {
		t.Fatal("cannot parse the server's URL")
	}
	u.User = url.UserPassword(role, "r")
	return u.String()
}

// What a client of the pooler left in a session is not taken for the role's.
func TestLeakOfAnotherClientIsNotTakenForTheRolesLimit(t *testing.T) {
	t.Parallel()
	r := setup(t, pooled(t, pgx, "default_pool_size=1"), pooling, pool(workload.OLTP, partition.PoolConfig{StatementTimeout: time.Second}))
	mustExec(t, r.plain(), "SET statement_timeout = '500ms'")
	if err := r.db.PingContext(oltp); err != nil {
		t.Fatal(err)
	}
	if got := r.stats(workload.OLTP).Enforcement; got != "transaction" {
		t.Errorf("enforcement %q", got)
	}
}

func TestSessionSettingsAreRefusedBehindAPoolerOfTransactions(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		for _, settings := range [][]string{
			{"default_pool_size=1"},
			{"default_pool_size=3"},
			{"default_pool_size=3", "min_pool_size=3", "server_round_robin=1"},
			{"pool_mode=statement", "default_pool_size=2"},
		} {
			r := setup(t, pooled(t, tg, settings...))
			other := r.plain()
			want := ask(t, oltp, other, tg.limit)
			err := r.db.PingContext(oltp)
			if !errors.Is(err, stmttimeout.ErrPooled) || !strings.Contains(err.Error(), "stmttimeout.TransactionPooling()") {
				t.Errorf("%v: %v, want a refusal that names the mode", settings, err)
			}
			if got := ask(t, oltp, other, tg.limit); got != want {
				t.Errorf("%v: another client has %s, want %s", settings, got, want)
			}
		}
	})
}

func TestBusyPoolerOfTransactionsIsRecognised(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		behind := pooled(t, tg, "default_pool_size=3")
		stop := busy(t, open(t, tg.driver, behind.dsn(t)), 8, "0.001")
		defer stop()
		for range 10 {
			if err := setup(t, behind).db.PingContext(oltp); !errors.Is(err, stmttimeout.ErrPooled) {
				t.Errorf("%v, want a refusal", err)
			}
		}
	})
}

// The one session is lent to somebody else for longer than a second each time.
func TestSaturatedPoolerOfTransactionsIsRecognised(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		behind := pooled(t, tg, "default_pool_size=1")
		stop := busy(t, open(t, tg.driver, behind.dsn(t)), 1, "1.2")
		defer stop()
		r := setup(t, behind, pool(workload.OLTP, partition.PoolConfig{AcquireTimeout: time.Minute, DialTimeout: time.Minute}))
		if err := r.db.PingContext(oltp); !errors.Is(err, stmttimeout.ErrPooled) {
			t.Errorf("%v, want a refusal", err)
		}
	})
}

// busy keeps n clients of db querying, for so long each time.
func busy(t *testing.T, db *sql.DB, n int, seconds string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				db.ExecContext(ctx, "SELECT pg_sleep("+seconds+")")
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

func TestPoolerOfSessionsIsNotRefused(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		for _, settings := range [][]string{
			{"default_pool_size=5"},
			{"default_pool_size=1"}, // no session is left to compare with
		} {
			behind := pooled(t, tg, append(settings, "pool_mode=session")...)
			r := setup(t, behind, pool(workload.OLTP, partition.PoolConfig{StatementTimeout: 4321 * ms}))
			if got := ask(t, oltp, r.db, tg.limit); got != "4321ms" {
				t.Errorf("%v: the limit is %s", settings, got)
			}
			if got := r.stats(workload.OLTP).Enforcement; got != "session" {
				t.Errorf("%v: enforcement %q", settings, got)
			}
		}
	})
}

// pgx keeps statements prepared by default, and PgBouncer 1.18 would hand them to servers that have never heard of them.
func TestSetUpPreparesNothing(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]partition.Option{"pooled": {pooling}, "direct": nil} {
		tg := pgx
		if name == "pooled" {
			dsn := testserver.StartPgBouncer(t, pgx.dsn(t), "default_pool_size=2").DSN
			tg.dsn = func(testing.TB) string { return dsn }
		}
		r := setup(t, tg, append(opts, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 5}))...)
		_, giveBack := r.take(oltp, 5)
		giveBack()
		if err := r.db.PingContext(oltp); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		own := open(t, "postgres", tg.dsn(t))
		if name == "direct" {
			own = r.db
		}
		query := "SELECT count(*) FROM pg_prepared_statements WHERE statement NOT LIKE '%pg_prepared_statements%'"
		for range 4 {
			if n := ask(t, oltp, own, query); n != "0" {
				t.Errorf("%s: %s statements are prepared", name, n)
			}
		}
	}
}

func TestRestartOfThePoolerIsNotNoticed(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		s := testserver.StartPgBouncer(t, tg.dsn(t))
		r := setupOn(t, tg, withExec(t, tg, s.DSN), pooling, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 3}))
		_, giveBack := r.take(oltp, 3)
		giveBack()
		s.Restart()
		for range 6 {
			r.exec(oltp, "SELECT 1") // plain database/sql does not repeat a Ping
		}
	})
}
