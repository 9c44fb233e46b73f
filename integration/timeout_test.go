package integration

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	libpq "github.com/lib/pq"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// paths are the ways on which the error of a slow statement can reach its caller.
var paths = map[string]func(ctx context.Context, db *sql.DB, slow string) error{
	"Exec": func(ctx context.Context, db *sql.DB, slow string) error {
		_, err := db.ExecContext(ctx, slow)
		return err
	},
	"Query": func(ctx context.Context, db *sql.DB, slow string) error {
		return allRows(db.QueryContext(ctx, slow))
	},
	"QueryRow": func(ctx context.Context, db *sql.DB, slow string) error {
		var v any
		return db.QueryRowContext(ctx, slow).Scan(&v)
	},
	"Stmt.Exec": func(ctx context.Context, db *sql.DB, slow string) error {
		return prepared(ctx, db, slow, func(s *sql.Stmt) error {
			_, err := s.ExecContext(ctx)
			return err
		})
	},
	"Stmt.Query": func(ctx context.Context, db *sql.DB, slow string) error {
		return prepared(ctx, db, slow, func(s *sql.Stmt) error { return allRows(s.QueryContext(ctx)) })
	},
	"Tx.Query": func(ctx context.Context, db *sql.DB, slow string) error {
		tx, err := db.BeginTx(context.WithoutCancel(oltp), nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		return allRows(tx.QueryContext(ctx, slow))
	},
	"Conn.Exec": func(ctx context.Context, db *sql.DB, slow string) error {
		c, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.ExecContext(ctx, slow)
		return err
	},
}

// slowOn is the slow statement for a path.
func (tg target) slowOn(path string) string {
	if strings.HasSuffix(path, "Exec") && tg.slowSet != "" {
		return tg.slowSet
	}
	return tg.slow
}

func allRows(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	_, err = drain(rows)
	return err
}

func prepared(ctx context.Context, db *sql.DB, query string, use func(*sql.Stmt) error) error {
	stmt, err := db.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	return use(stmt)
}

// driversOwn reports whether err holds the driver's error for a statement timeout of the server.
func driversOwn(tg target, err error) bool {
	switch tg.name {
	case "pgx":
		var e *pgconn.PgError
		return errors.As(err, &e) && e.Code == "57014"
	case "pq":
		var e *libpq.Error
		return errors.As(err, &e) && e.Code == "57014"
	default:
		var e *mysql.MySQLError
		return errors.As(err, &e) && e.Number == 1969
	}
}

// exceeded checks the error of a statement that ran past its limit.
func exceeded(t *testing.T, path string, err error, limit time.Duration, byServer bool) {
	t.Helper()
	var e *stmttimeout.Error
	switch {
	case !errors.Is(err, stmttimeout.ErrExceeded) || !errors.As(err, &e):
		t.Errorf("%s: got %v, want ErrExceeded", path, err)
	case !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, partition.ErrRejected):
		t.Errorf("%s: %v is not, or not only, a deadline", path, err)
	case e.Limit != limit || e.ByServer != byServer || e.Elapsed < limit || e.Elapsed > limit+500*ms+slack:
		t.Errorf("%s: limit %v, by the server %v, after %v; want %v, %v, about then", path, e.Limit, e.ByServer, e.Elapsed, limit, byServer)
	}
}

func TestServersTimeoutReachesTheCallerOnEveryPathAsTheDriversError(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		const limit = 150 * ms
		r := setup(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, StatementTimeout: limit}))
		session := ask(t, oltp, r.db, tg.session)
		for _, name := range slices.Sorted(keys(paths)) {
			for _, ctx := range []context.Context{oltp, t.Context()} { // without and with a Done channel
				err := paths[name](ctx, r.db, tg.slowOn(name))
				exceeded(t, name, err, limit, true)
				if !driversOwn(tg, err) {
					t.Errorf("%s: the driver's error is not in %v", name, err)
				}
			}
		}
		if got := ask(t, oltp, r.db, tg.session); got != session {
			t.Error("a timeout of the server cost the connection")
		}
		if s := r.stats(workload.OLTP); s.StatementTimeouts != uint64(2*len(paths)) {
			t.Errorf("%d timeouts counted of %d", s.StatementTimeouts, 2*len(paths))
		}
	})
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestTighterLimitOfTheContextHoldsForItsCallAlone(t *testing.T) {
	on(t, allTargets, func(t *testing.T, tg target) {
		const limit = 100 * ms
		r := setup(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, StatementTimeout: 30 * time.Second}))
		r.exec(oltp, "SELECT 1")
		for _, name := range slices.Sorted(keys(paths)) {
			for _, parent := range []context.Context{oltp, t.Context()} {
				began := time.Now()
				exceeded(t, name, paths[name](stmttimeout.With(parent, limit), r.db, tg.slowOn(name)), limit, false)
				between(t, name, time.Since(began), limit, limit)
				r.exec(oltp, briefOn(tg)) // longer than limit
			}
		}
		if tg.limit != "" {
			if got := ask(t, oltp, r.db, tg.limit); got != "30s" && got != "30" {
				t.Errorf("the pool's own limit is %s now", got)
			}
		}
	})
}

// briefOn is a statement of some 200 ms.
func briefOn(tg target) string {
	switch tg.name {
	case "sqlite":
		return "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 8000) SELECT count(*) FROM c"
	case "mariadb":
		return "SELECT count(*) FROM seq_1_to_2 WHERE SLEEP(0.1) = 0"
	}
	return "SELECT pg_sleep(0.2)"
}

// SQLite has no setting for it: the guard alone holds the limit.
func TestGuardAloneHoldsTheLimitOfSQLite(t *testing.T) {
	t.Parallel()
	const limit = 200 * ms
	r := setup(t, sqlite, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, StatementTimeout: limit}))
	for _, name := range slices.Sorted(keys(paths)) {
		began := time.Now()
		exceeded(t, name, paths[name](oltp, r.db, sqlite.slow), limit, false)
		between(t, name, time.Since(began), limit, limit)
		r.exec(oltp, "SELECT 1")
	}
	if s := r.stats(workload.OLTP); s.Enforcement != string(stmttimeout.EnforcedByClient) {
		t.Errorf("enforcement %q", s.Enforcement)
	}
}

// C15, C17: MariaDB's own setting, which is in seconds and holds for every statement.
func TestMariaDBEndsSelectAndUpdateAtTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 200 * ms
	r := setup(t, mariadb, pool(workload.OLTP, partition.PoolConfig{StatementTimeout: limit}))
	table := r.table("id int, v int")
	r.exec(oltp, "INSERT INTO "+table+" VALUES (1, 1), (2, 2), (3, 3)")
	if err := r.db.PingContext(oltp); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		"SELECT count(*) FROM " + table + " a, " + table + " b WHERE SLEEP(1) = 0",
		"UPDATE " + table + " SET v = v + 1 WHERE id = 2 AND SLEEP(1) = 0",
		"SELECT SLEEP(2)",
	} {
		began := time.Now()
		_, err := r.db.ExecContext(oltp, query)
		exceeded(t, query, err, limit, true)
		between(t, query, time.Since(began), 150*ms, 600*ms)
		if !driversOwn(mariadb, err) {
			t.Errorf("%s: %v is not over error 1969", query, err)
		}
	}
	if got := ask(t, oltp, r.db, "SELECT v FROM "+table+" WHERE id = 2"); got != "2" {
		t.Errorf("the interrupted UPDATE left %s", got)
	}
}

// C30
func TestTimeoutWhileRowsStreamComesOutOfRowsErrAndLeavesTheConnectionWhole(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		const limit = time.Second // in which a busy machine has the first rows
		r := setup(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, StatementTimeout: limit}))
		session := ask(t, oltp, r.db, tg.session)
		rows, err := r.db.QueryContext(oltp,
			"SELECT i, CASE WHEN i = 900000 THEN pg_sleep(5) END FROM generate_series(1, 900001) i")
		if err != nil {
			t.Fatalf("Query: %v", err)
		}
		n, err := drain(rows)
		if n == 0 || !errors.Is(err, stmttimeout.ErrExceeded) || !driversOwn(tg, err) {
			t.Errorf("%d rows, %v, want ErrExceeded over the driver's 57014", n, err)
		}
		if got := ask(t, oltp, r.db, tg.session); got != session {
			t.Error("the connection was not used again")
		}
	})
}

// P11: the time that a consumer takes is not the statement's.
func TestSlowConsumerOfRowsThatWereSentLosesNone(t *testing.T) {
	on(t, allTargets, func(t *testing.T, tg target) {
		const limit = 200 * ms
		r := setup(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, StatementTimeout: limit}))
		session := ""
		if tg.session != "" {
			session = ask(t, oltp, r.db, tg.session)
		}
		rows, err := r.db.QueryContext(oltp, "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for rows.Next() {
			if n++; n < 3 {
				time.Sleep(limit + 600*ms) // past the guard's grace, too
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); n != 5 || err != nil {
			t.Errorf("%d rows, %v, want all 5", n, err)
		}
		if tg.session != "" {
			if got := ask(t, oltp, r.db, tg.session); got != session {
				t.Error("the connection was given up")
			}
		}
		if s := r.stats(workload.OLTP); s.Opened != 1 {
			t.Errorf("opened %d connections", s.Opened)
		}
	})
}

// It needs a server with German messages; without one the unit tests of package stmttimeout stand in.
func TestLocalisedTimeoutOfPostgreSQLIsRecognised(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		const locale = "de_DE.UTF-8"
		german := withParam(t, tg.dsn(t), "options", "-c lc_messages="+locale)
		r := setupOn(t, tg, german, pool(workload.OLTP, partition.PoolConfig{StatementTimeout: 150 * ms}))
		if err := r.db.PingContext(oltp); err != nil {
			t.Skipf("the server has no locale %s", locale)
		}
		_, err := r.db.ExecContext(oltp, tg.slow)
		exceeded(t, "in German", err, 150*ms, true)
		if !driversOwn(tg, err) {
			t.Errorf("got %v", err)
		}
		// A cancellation has the same SQLSTATE, and comes before the limit.
		r = setupOn(t, tg, german, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 2, StatementTimeout: 10 * time.Second}))
		conns, giveBack := r.take(oltp, 1)
		defer giveBack()
		session := ask(t, oltp, conns[0], tg.session)
		done := make(chan error)
		go func() {
			_, err := conns[0].ExecContext(oltp, tg.slow)
			done <- err
		}()
		eventually(t, 10*time.Second, func() string {
			if ask(t, oltp, r.db, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid = "+session) == "0" {
				return "the statement does not run"
			}
			return ""
		})
		r.exec(oltp, "SELECT pg_cancel_backend("+session+")")
		if err := <-done; err == nil || errors.Is(err, stmttimeout.ErrExceeded) || !driversOwn(tg, err) {
			t.Errorf("a cancelled statement: %v, want the driver's own error", err)
		}
	})
}
