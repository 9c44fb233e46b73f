package conformance_test

import (
	"database/sql"
	"fmt"
	"reflect"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// C14, as far as the driver goes: GORM asserts the concrete type of a driver's error, and does not unwrap it.
func TestDuplicateKeyIsTheDriversOwnErrorOnEveryWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		driver, arg string
		dsn         func(testing.TB) string
		duplicate   func(err error) bool
	}{
		{"pgx", "$1", testserver.Postgres, func(err error) bool { e, ok := err.(*pgconn.PgError); return ok && e.Code == "23505" }},
		{"postgres", "$1", testserver.Postgres, func(err error) bool { e, ok := err.(*pq.Error); return ok && e.Code == "23505" }},
		{"mysql", "?", testserver.MariaDB, func(err error) bool { e, ok := err.(*mysql.MySQLError); return ok && e.Number == 1062 }},
	} {
		t.Run(c.driver, func(t *testing.T) {
			t.Parallel()
			for name, db := range pair(t, c.driver, c.dsn(t)) {
				table := fmt.Sprintf("duplicates_%s_%s", c.driver, name)
				mustRun(t, db, "CREATE TABLE "+table+" (n int PRIMARY KEY)")
				mustRun(t, db, "INSERT INTO "+table+" VALUES (1)")
				for way, err := range insertEveryWay(t, db, "INSERT INTO "+table+" VALUES ("+c.arg+")", 1) {
					if !c.duplicate(err) {
						t.Errorf("%s, %s: %T %v", name, way, err, err)
					}
				}
				mustRun(t, db, "DROP TABLE "+table)
			}
		})
	}
}

func mustRun(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(oltp, query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func insertEveryWay(t *testing.T, db *sql.DB, query string, arg any) map[string]error {
	t.Helper()
	errs := make(map[string]error)
	_, errs["direct"] = db.ExecContext(oltp, query, arg)
	stmt, err := db.PrepareContext(oltp, query)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	_, errs["prepared"] = stmt.ExecContext(oltp, arg)
	for _, way := range []string{"in a transaction", "by tx.Stmt"} {
		tx, err := db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		if way == "by tx.Stmt" {
			_, errs[way] = tx.StmtContext(oltp, stmt).ExecContext(oltp, arg)
		} else {
			_, errs[way] = tx.ExecContext(oltp, query, arg)
		}
		tx.Rollback()
	}
	return errs
}

// C20, as far as the driver goes: tools choose the SQL that they speak by it.
func TestDriverThatToolsLookAtIsTheUnderlyingOne(t *testing.T) {
	t.Parallel()
	for driver, want := range map[string]any{"pgx": &stdlib.Driver{}, "postgres": &pq.Driver{}, "mysql": &mysql.MySQLDriver{}} {
		dsn := "postgres://localhost/nowhere"
		if driver == "mysql" {
			dsn = "tcp(localhost:1)/nowhere"
		}
		for name, db := range pair(t, driver, dsn) {
			if got := reflect.TypeOf(db.Driver()); got != reflect.TypeOf(want) && got != reflect.TypeOf(want).Elem() {
				t.Errorf("%s, %s: %v", driver, name, got)
			}
		}
	}
}

func TestExecWithoutArgumentsRunsSeveralStatements(t *testing.T) {
	t.Parallel()
	for driver, dsn := range map[string]string{
		"pgx": testserver.Postgres(t), "postgres": testserver.Postgres(t), "mysql": testserver.MariaDB(t) + "?multiStatements=true",
	} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			for name, db := range pair(t, driver, dsn) {
				table := fmt.Sprintf("script_%s_%s", driver, name)
				mustRun(t, db, fmt.Sprintf("CREATE TABLE %[1]s (n int); INSERT INTO %[1]s VALUES (1); INSERT INTO %[1]s VALUES (2)", table))
				var n int
				if err := db.QueryRowContext(oltp, "SELECT sum(n) FROM "+table).Scan(&n); n != 3 || err != nil {
					t.Errorf("%s: sum %d, %v", name, n, err)
				}
				mustRun(t, db, "DROP TABLE "+table)
			}
		})
	}
}
