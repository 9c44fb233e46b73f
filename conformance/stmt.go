package conformance

import (
	"context"
	"database/sql"
	"fmt"
)

var stmtScenarios = []Scenario{
	{Name: "a statement prepared once and used under every tag", Needs: sqlWords, Run: func(s *Side) {
		s.withStmt(s.DB, s.cast("SELECT ", s.Casts[0]), func(stmt *sql.Stmt) {
			for round := range 3 {
				for _, tag := range tags {
					s.group(string(tag), func() { s.useStmt(stmt, in(tag), round) })
				}
			}
		})
	}},
	{Name: "many more statements than the cache holds", Conns: 1, Needs: sqlWords, Run: func(s *Side) {
		const n = 520
		stmts := make([]*sql.Stmt, n)
		for i := range stmts {
			var err error
			if stmts[i], err = s.DB.PrepareContext(oltp, fmt.Sprintf("SELECT %d", i)); err != nil {
				s.Note(fmt.Sprint("prepare ", i), err)
				return
			}
		}
		wrong, first := 0, any(nil)
		for round := range 2 {
			for i, stmt := range stmts {
				if got := one(stmt.QueryRowContext(oltp)); describe(got) != describe(int64(i)) {
					wrong, first = wrong+1, got
				}
			}
			s.Note(fmt.Sprint("wrong in round ", round), wrong, first)
		}
		for _, stmt := range stmts {
			if err := stmt.Close(); err != nil {
				s.Note("close", err)
			}
		}
	}},
	{Name: "a statement that is closed", Needs: sqlWords, Run: func(s *Side) {
		stmt, err := s.DB.PrepareContext(oltp, "SELECT 1")
		if err != nil {
			s.Note("prepare", err)
			return
		}
		s.Note("close", stmt.Close(), stmt.Close())
		s.Note("use", failed(stmt.ExecContext(oltp)), all(stmt.QueryContext(oltp)), one(stmt.QueryRowContext(oltp)))
		s.inTx(oltp, nil, func(tx *sql.Tx) { s.Note("in a transaction", one(tx.StmtContext(oltp, stmt).QueryRowContext(oltp))) })
	}},
	{Name: "a statement closed while its rows are open", Needs: func(w Words) bool { return w.Many != "" }, Run: func(s *Side) {
		if s.ClosingIsFatal {
			s.closedInUse(s.DB)
			return
		}
		s.onEach(s.closedInUse)
	}},
	{Name: "a transaction's statement after its end", Needs: sqlWords, Run: func(s *Side) {
		s.withStmt(s.DB, "SELECT 1", func(outer *sql.Stmt) {
			tx, err := s.DB.BeginTx(oltp, nil)
			if err != nil {
				s.Note("begin", err)
				return
			}
			s.withStmt(tx, "SELECT 2", func(own *sql.Stmt) {
				inner := tx.StmtContext(oltp, outer)
				s.Note("inside", one(own.QueryRowContext(oltp)), one(inner.QueryRowContext(oltp)))
				s.Note("commit", tx.Commit())
				s.Note("after it", one(own.QueryRowContext(oltp)), one(inner.QueryRowContext(oltp)), one(outer.QueryRowContext(oltp)))
			})
		})
	}},
	{Name: "a statement of another handle", Needs: sqlWords, Run: func(s *Side) {
		s.withStmt(s.DB, "SELECT 1", func(stmt *sql.Stmt) {
			s.inTx(oltp, nil, func(tx *sql.Tx) {
				twice := tx.StmtContext(oltp, tx.StmtContext(oltp, stmt))
				s.Note("Stmt of a Stmt", one(twice.QueryRowContext(oltp)))
				s.inTx(oltp, nil, func(other *sql.Tx) {
					s.Note("of another transaction", one(other.StmtContext(oltp, tx.StmtContext(oltp, stmt)).QueryRowContext(oltp)))
				})
			})
		})
	}},
	{Name: "one text prepared twice in a transaction, one loop in the other", Needs: sqlWords, Run: func(s *Side) {
		s.underBoth(func(ctx context.Context) {
			s.inTx(ctx, nil, func(tx *sql.Tx) {
				text := "SELECT 1 UNION ALL SELECT 2"
				s.withStmt(tx, text, func(outer *sql.Stmt) {
					s.withStmt(tx, text, func(inner *sql.Stmt) { s.nested(ctx, outer, inner) })
				})
			})
		})
	}},
	{Name: "a statement whose table changes under it", Conns: 1, Needs: needs(tableWords, func(w Words) bool { return len(w.Spoil) > 0 }), Run: func(s *Side) {
		s.withTable(func() {
			s.setup("INSERT INTO " + s.Table + " (n) VALUES (1)")
			for _, spoil := range s.Spoil {
				s.group(spoil, func() { s.spoilt(spoil) })
			}
		})
	}},
	{Name: "a statement that fails and is used again", Needs: needs(sqlWords, tableWords), Run: func(s *Side) {
		s.withTable(func() {
			s.withStmt(s.DB, "INSERT INTO "+s.Table+" (n) VALUES ("+s.Arg(1)+")", func(stmt *sql.Stmt) {
				for _, n := range []any{1, 1, 2, "not a number", 3, 3} {
					s.Note("insert", failed(stmt.ExecContext(oltp, n)))
				}
			})
			s.Note("rows", all(s.DB.QueryContext(oltp, "SELECT n FROM "+s.Table+" ORDER BY n")))
		})
	}},
	{Name: "prepared without being used", Conns: 2, Needs: sqlWords, Run: func(s *Side) {
		for _, text := range []string{"SELECT 1", "SELEC 1", "SELECT * FROM nowhere_to_be_found", "", "SELECT 1 -- no more"} {
			s.onEach(func(r runner) { s.withStmt(r, text, func(*sql.Stmt) { s.Note("prepared " + text) }) })
		}
	}},
}

// useStmt uses a statement in every way that there is.
func (s *Side) useStmt(stmt *sql.Stmt, ctx context.Context, n int) {
	s.Note("query", all(stmt.QueryContext(ctx, n)))
	s.Note("query row", one(stmt.QueryRowContext(ctx, n)))
	s.Note("exec", failed(stmt.ExecContext(ctx, n)))
	s.Note("too few arguments", one(stmt.QueryRowContext(ctx)))
	s.inTx(ctx, nil, func(tx *sql.Tx) {
		s.Note("tx.Stmt", one(tx.StmtContext(ctx, stmt).QueryRowContext(ctx, n)), one(tx.Stmt(stmt).QueryRow(n)))
		s.Note("outside beside it", one(stmt.QueryRowContext(ctx, n)))
	})
	s.onConn(ctx, func(c *sql.Conn) {
		tx, err := c.BeginTx(ctx, nil)
		if err != nil {
			s.Note("begin", err)
			return
		}
		s.Note("tx.Stmt on a connection", one(tx.StmtContext(ctx, stmt).QueryRowContext(ctx, n)))
		s.Note("commit", tx.Commit())
	})
}

func (s *Side) spoilt(spoil string) {
	query := "SELECT * FROM " + s.Table
	s.withStmt(s.DB, query, func(stmt *sql.Stmt) {
		s.Note("before", all(stmt.QueryContext(oltp)))
		s.Note("spoil", failed(s.DB.ExecContext(oltp, fmt.Sprintf(spoil, s.Table))))
		s.Note("first use after it", all(stmt.QueryContext(oltp)))
		s.Note("later use", all(stmt.QueryContext(oltp)))
	})
	s.withStmt(s.DB, query, func(stmt *sql.Stmt) { s.Note("prepared anew", all(stmt.QueryContext(oltp))) })
}

func (s *Side) closedInUse(r runner) {
	stmt, err := r.PrepareContext(oltp, s.Many)
	if err != nil {
		s.Note("prepare", err)
		return
	}
	rows, err := stmt.QueryContext(oltp)
	if err != nil {
		s.Note("query", err)
		return
	}
	s.Note("next", rows.Next())
	s.Note("close", stmt.Close())
	n := 0
	for rows.Next() {
		n++
	}
	s.Note("the rest", n, rows.Err(), rows.Close())
	s.Note("and then", one(r.QueryRowContext(oltp, "SELECT 1")))
}

func (s *Side) nested(ctx context.Context, outer, inner *sql.Stmt) {
	rows, err := outer.QueryContext(ctx)
	if err != nil {
		s.Note("outer", err)
		return
	}
	for rows.Next() {
		s.Note("inner", all(inner.QueryContext(ctx)))
	}
	s.Note("end", rows.Err(), rows.Close())
}
