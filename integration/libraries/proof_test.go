package libraries

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
)

// proof is a table in which migrations write down where they ran, and how many advisory locks that session had.
func (s server) proof() string {
	if s.driver == "mysql" {
		return "CREATE TABLE proof (step int, here varchar(80), session int, locks int)"
	}
	return "CREATE TABLE proof (step int, here text, session int, locks int)"
}

// prove is a statement for a migration. MariaDB shows the session that has a lock for a given name alone.
func (s server) prove(step int, lock string) string {
	if s.driver == "mysql" {
		return fmt.Sprintf("INSERT INTO proof SELECT %d, %s, CONNECTION_ID(), COALESCE(IS_USED_LOCK('%s') = CONNECTION_ID(), 0)", step, s.here, lock)
	}
	return fmt.Sprintf("INSERT INTO proof SELECT %d, %s, pg_backend_pid(), count(*) FROM pg_locks "+
		"WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()", step, s.here)
}

type proven struct {
	step    int
	here    string
	session int64
	locks   int
}

func proofs(tb testing.TB, ctx context.Context, db *sql.DB) (all []proven) {
	tb.Helper()
	rows, err := db.QueryContext(ctx, "SELECT step, here, session, locks FROM proof ORDER BY step")
	if err != nil {
		tb.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var p proven
		if err := rows.Scan(&p.step, &p.here, &p.session, &p.locks); err != nil {
			tb.Fatal(err)
		}
		all = append(all, p)
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// checkProofs fails the test unless each of the steps ran once, as Admin, on one session, which had one lock.
func checkProofs(t *testing.T, all []proven, steps int, home homes) {
	t.Helper()
	if len(all) != steps {
		t.Fatalf("%d steps of migrations ran, want %d: %+v", len(all), steps, all)
	}
	for i, p := range all {
		if p.step != i+1 || home(p.here) != "admin" || p.session != all[0].session || p.locks != 1 {
			t.Errorf("%+v, want step %d in admin, on session %d, with 1 lock", p, i+1, all[0].session)
		}
	}
}

// noLock fails the test if this session of PostgreSQL has an advisory lock.
func noLock(t *testing.T, db *sql.DB, session int64) {
	t.Helper()
	var n int
	err := db.QueryRow("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = $1", session).Scan(&n)
	if err != nil || n != 0 {
		t.Errorf("the session has kept %d locks, %v", n, err)
	}
}
