package conformance

import (
	"database/sql"
	"fmt"
)

var resultScenarios = []Scenario{
	{Name: "results", Needs: needs(sqlWords, tableWords), Run: func(s *Side) {
		s.withTable(func() {
			insert := "INSERT INTO " + s.Table + " (n, s) VALUES (" + s.Arg(1) + ", " + s.Arg(2) + ")"
			n := 0
			s.onEach(func(r runner) {
				n += 100
				s.Note("insert", done(r.ExecContext(oltp, insert, n, "one")))
				s.Note("insert two", done(r.ExecContext(oltp, fmt.Sprintf("INSERT INTO %s (n, s) VALUES (%d, 'a'), (%d, 'b')", s.Table, n+1, n+2))))
				s.Note("insert nothing", done(r.ExecContext(oltp, "INSERT INTO "+s.Table+" (n, s) SELECT n, s FROM "+s.Table+" WHERE 1 = 0")))
				s.withStmt(r, insert, func(stmt *sql.Stmt) {
					s.Note("insert, prepared", done(stmt.ExecContext(oltp, n+3, "three")))
					s.Note("insert again, prepared", done(stmt.ExecContext(oltp, n+4, nil)))
				})
				s.Note("update", done(r.ExecContext(oltp, "UPDATE "+s.Table+" SET s = 'u'")))
				s.Note("update to the same", done(r.ExecContext(oltp, "UPDATE "+s.Table+" SET s = 'u'")))
				s.Note("update nothing", done(r.ExecContext(oltp, "UPDATE "+s.Table+" SET s = 'v' WHERE n < 0")))
				s.Note("exec of a query", done(r.ExecContext(oltp, "SELECT n FROM "+s.Table)))
				s.Note("query of an update", all(r.QueryContext(oltp, "UPDATE "+s.Table+" SET s = 'w'")))
				s.Note("rows", all(r.QueryContext(oltp, "SELECT n, s FROM "+s.Table+" ORDER BY n")))
				s.Note("delete", done(r.ExecContext(oltp, "DELETE FROM "+s.Table)))
				s.Note("empty text", done(r.ExecContext(oltp, "")))
			})
			s.Note("DDL", done(s.DB.ExecContext(oltp, "ALTER TABLE "+s.Table+" ADD COLUMN added int")))
		})
	}},
	{Name: "errors of statements", Needs: needs(sqlWords, tableWords), Run: func(s *Side) {
		s.withTable(func() {
			s.setup("INSERT INTO " + s.Table + " (n) VALUES (1)")
			for _, text := range []string{
				"SELEC 1", "SELECT * FROM nowhere_to_be_found", "SELECT nothing FROM " + s.Table,
				"INSERT INTO " + s.Table + " (n) VALUES (1)", "",
			} {
				s.group(text, func() { s.errorOf(text) })
			}
		})
	}},
	{Name: "several statements in a text", Needs: needs(sqlWords, func(w Words) bool { return w.Multi != "" }), Run: func(s *Side) {
		s.onEach(func(r runner) {
			s.Note("query", all(r.QueryContext(oltp, s.Multi)))
			s.Note("exec", done(r.ExecContext(oltp, s.Multi)))
		})
		s.onEach(func(r runner) { s.Note("query with an argument", all(r.QueryContext(oltp, s.Multi, 1))) })
		s.onEach(func(r runner) {
			s.withStmt(r, s.Multi, func(stmt *sql.Stmt) { s.Note("prepared", all(stmt.QueryContext(oltp))) })
		})
		s.Note("left in the middle", s.leave())
		s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
	}},
	{Name: "several statements without rows", Needs: needs(tableWords, func(w Words) bool { return w.Script != "" }), Run: func(s *Side) {
		s.withTable(func() {
			s.onEach(func(r runner) {
				s.Note("exec", done(r.ExecContext(oltp, fmt.Sprintf(s.Script, s.Table))))
				s.Note("rows", all(r.QueryContext(oltp, "SELECT n FROM "+s.Table+" ORDER BY n")))
				s.Note("clear", failed(r.ExecContext(oltp, "DELETE FROM "+s.Table)))
			})
			s.onEach(func(r runner) {
				s.Note("exec with an argument", failed(r.ExecContext(oltp, fmt.Sprintf(s.Script, s.Table), 1)))
			})
		})
	}},
}

// errorOf records what a wrong text gives on every way.
func (s *Side) errorOf(text string) {
	s.onEach(func(r runner) { s.Note("exec", failed(r.ExecContext(oltp, text))) })
	s.onEach(func(r runner) { s.Note("query", all(r.QueryContext(oltp, text))) })
	s.onEach(func(r runner) { s.Note("query row", one(r.QueryRowContext(oltp, text))) })
	s.onEach(func(r runner) {
		s.withStmt(r, text, func(stmt *sql.Stmt) { s.Note("prepared", failed(stmt.ExecContext(oltp))) })
	})
	s.inTx(oltp, nil, func(tx *sql.Tx) {
		s.Note("in a transaction", failed(tx.ExecContext(oltp, text)))
		s.Note("what follows it", one(tx.QueryRowContext(oltp, "SELECT 1")))
		s.Note("and its Commit", tx.Commit())
	})
}

// leave closes rows of several result sets in the first of them.
func (s *Side) leave() any {
	rows, err := s.DB.QueryContext(oltp, s.Multi)
	if err != nil {
		return err
	}
	return []any{rows.Next(), rows.Close(), rows.Err(), rows.NextResultSet(), rows.Next()}
}
