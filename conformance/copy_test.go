package conformance_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlbulkhead/sqlbulkhead/conformance"
	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// lib/pq runs COPY through a prepared statement that collects rows until it is executed without arguments.
func TestCopyThroughPrepareOfPQWorksAsPlain(t *testing.T) {
	t.Parallel()
	dsn := testserver.Postgres(t)
	exercise(t, conformance.Twin{
		Name: "lib/pq, COPY", Plain: openPlain("postgres", dsn), Partitioned: openPartitioned("postgres", dsn), Extra: copyScenarios,
	})
}

var copyScenarios = []conformance.Scenario{
	{Name: "COPY", Run: func(s *conformance.Side) {
		inTable(s, func() {
			for _, c := range []struct {
				name string
				rows []any
			}{{"two rows", []any{1, 2}}, {"no row", nil}, {"a row that does not fit", []any{3, "x"}}, {"a duplicate", []any{1}}} {
				s.Note(c.name, copyIn(s, c.rows)...)
				s.Note(c.name+", rows", read(s.DB.QueryContext(oltp, "SELECT n FROM "+s.Table+" ORDER BY n")))
			}
		})
	}},
	{Name: "COPY outside a transaction", Run: func(s *conformance.Side) {
		inTable(s, func() {
			_, err := s.DB.PrepareContext(oltp, "COPY "+s.Table+" (n) FROM STDIN")
			s.Note("prepare", err)
		})
	}},
}

func inTable(s *conformance.Side, f func()) {
	mustExec(s, "CREATE TABLE "+s.Table+" (n int UNIQUE)")
	defer mustExec(s, "DROP TABLE "+s.Table)
	f()
}

func mustExec(s *conformance.Side, query string) {
	if _, err := s.DB.ExecContext(oltp, query); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
}

func copyIn(s *conformance.Side, rows []any) (outcomes []any) {
	tx, err := s.DB.BeginTx(oltp, nil)
	if err != nil {
		return []any{err}
	}
	defer tx.Rollback()
	stmt, err := tx.PrepareContext(oltp, "COPY "+s.Table+" (n) FROM STDIN")
	if err != nil {
		return []any{err}
	}
	for _, row := range rows {
		outcomes = append(outcomes, resultOf(stmt.ExecContext(oltp, row)))
	}
	return append(outcomes, resultOf(stmt.ExecContext(oltp)), stmt.Close(), tx.Commit())
}

// copyFromScenarios is what pgx has for it: its own connection, by Raw.
var copyFromScenarios = []conformance.Scenario{
	{Name: "CopyFrom", Run: func(s *conformance.Side) {
		inTable(s, func() {
			c, err := s.DB.Conn(oltp)
			if err != nil {
				s.Note("conn", err)
				return
			}
			for _, rows := range [][][]any{{{1}, {2}, {3}}, {}, {{3}}, {{"x"}}} {
				s.Note(fmt.Sprint("copy ", rows), s.Raw(c, func(dc any) error {
					n, err := dc.(*stdlib.Conn).Conn().CopyFrom(oltp, pgx.Identifier{s.Table}, []string{"n"}, pgx.CopyFromRows(rows))
					s.Note("copied", n)
					return err
				}))
			}
			s.Note("close", c.Close())
			s.Note("rows", read(s.DB.QueryContext(oltp, "SELECT n FROM "+s.Table+" ORDER BY n")))
		})
	}},
}

// pair is both handles of a driver, for tests that know what is right.
func pair(t *testing.T, driver, dsn string) map[string]*sql.DB {
	t.Helper()
	dbs := map[string]*sql.DB{"plain": openPlain(driver, dsn)(t, 0), "partitioned": openPartitioned(driver, dsn)(t, 0)}
	for _, db := range dbs {
		t.Cleanup(func() { db.Close() })
	}
	return dbs
}
