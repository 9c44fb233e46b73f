package integration

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// The five lines of the README, on every driver: Open instead of sql.Open, a tag, and everything else unchanged.
func TestEverydayCallsWorkInEveryPoolOnEveryDriver(t *testing.T) {
	on(t, allTargets, func(t *testing.T, tg target) {
		r := setup(t, tg)
		table := r.table("id int PRIMARY KEY, name varchar(20)")
		insert, err := r.db.Prepare("INSERT INTO " + table + " VALUES (" + tg.arg + ", 'prepared')")
		if err != nil {
			t.Fatal(err)
		}
		defer insert.Close()
		contexts := []context.Context{context.Background()}
		for _, name := range standard {
			contexts = append(contexts, in(name))
		}
		for i, ctx := range contexts {
			everyday(t, ctx, r, table, insert, 10*i)
		}
		if got := ask(t, oltp, r.db, "SELECT count(*) FROM "+table); got != "15" {
			t.Errorf("%s rows, want 15", got)
		}
		for _, name := range standard {
			if r.stats(name).Acquired < 4 {
				t.Errorf("pool %s has served next to nothing", name)
			}
		}
	})
}

func everyday(t *testing.T, ctx context.Context, r *rig, table string, insert *sql.Stmt, id int) {
	t.Helper()
	r.exec(ctx, "INSERT INTO "+table+" VALUES ("+r.target.arg+", 'direct')", id)
	if _, err := insert.ExecContext(ctx, id+1); err != nil {
		t.Fatal(err)
	}
	inTx(t, ctx, r.db, func(tx *sql.Tx) {
		if _, err := tx.StmtContext(ctx, insert).ExecContext(ctx, id+2); err != nil {
			t.Fatal(err)
		}
	})
	rows, err := r.db.QueryContext(ctx, "SELECT id, name FROM "+table+" WHERE id >= "+r.target.arg+" ORDER BY id", id)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var n int
		var name string
		if err := rows.Scan(&n, &name); err != nil {
			t.Fatal(err)
		}
		got = append(got, name)
	}
	if want := "direct prepared prepared"; rows.Err() != nil || strings.Join(got, " ") != want {
		t.Errorf("rows %q, %v, want %q", got, rows.Err(), want)
	}
}

// inTx runs f in a transaction and commits it.
func inTx(tb testing.TB, ctx context.Context, db *sql.DB, f func(*sql.Tx)) {
	tb.Helper()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer tx.Rollback()
	f(tx)
	if err := tx.Commit(); err != nil {
		tb.Fatal(err)
	}
}

func TestEachPoolsSessionsHaveItsStatementTimeout(t *testing.T) {
	want := map[string][4]string{ // oltp, reporting, batch, admin
		"pgx":     {"5s", "1min", "15min", "0"},
		"pq":      {"5s", "1min", "15min", "0"},
		"mariadb": {"5", "60", "900", "0"},
	}
	on(t, serverTargets, func(t *testing.T, tg target) {
		r := setup(t, tg)
		for i, name := range standard {
			if got := ask(t, in(name), r.db, tg.limit); got != want[tg.name][i] {
				t.Errorf("pool %s: %s is %s, want %s", name, tg.limit, got, want[tg.name][i])
			}
		}
	})
}

func TestPoolsShowInApplicationNameBehindTheUsersOwn(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		named := setupOn(t, tg, withParam(t, tg.dsn(t), "application_name", "shop front"))
		unnamed := setup(t, tg)
		for _, name := range []workload.Name{workload.OLTP, workload.Reporting} {
			const query = "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()"
			if got := ask(t, in(name), named.db, query); got != "shop front/"+string(name) {
				t.Errorf("application_name %q", got)
			}
			if got := ask(t, in(name), unnamed.db, query); got != "sqlbulkhead/"+string(name) {
				t.Errorf("application_name %q where the user has none", got)
			}
		}
	})
}
