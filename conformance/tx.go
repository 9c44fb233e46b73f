package conformance

import (
	"context"
	"database/sql"
	"fmt"
)

var txScenarios = []Scenario{
	{Name: "isolation and read-only", Needs: sqlWords, Run: func(s *Side) {
		for level := sql.LevelDefault; level <= sql.LevelLinearizable+1; level++ {
			for _, readOnly := range []bool{false, true} {
				opts := &sql.TxOptions{Isolation: level, ReadOnly: readOnly}
				s.group(fmt.Sprintf("%v, read-only %v", level, readOnly), func() { s.isolation(opts) })
			}
		}
	}},
	{Name: "write in a read-only transaction", Needs: needs(sqlWords, tableWords), Run: func(s *Side) {
		s.withTable(func() {
			s.inTx(oltp, &sql.TxOptions{ReadOnly: true}, func(tx *sql.Tx) {
				s.Note("insert", failed(tx.ExecContext(oltp, "INSERT INTO "+s.Table+" (n) VALUES (1)")))
				s.Note("rows", all(tx.QueryContext(oltp, "SELECT n FROM "+s.Table)))
			})
			s.Note("insert outside", failed(s.DB.ExecContext(oltp, "INSERT INTO "+s.Table+" (n) VALUES (2)")))
		})
	}},
	{Name: "commit and rollback", Needs: needs(sqlWords, tableWords), Run: func(s *Side) {
		s.withTable(func() {
			insert := "INSERT INTO " + s.Table + " (n) VALUES (" + s.Arg(1) + ")"
			for n, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
				tx, err := s.DB.BeginTx(oltp, nil)
				if err != nil {
					s.Note("begin", err)
					continue
				}
				s.Note("insert", failed(tx.ExecContext(oltp, insert, n)))
				s.Note("inside", all(tx.QueryContext(oltp, "SELECT n FROM "+s.Table)))
				s.Note("end", end(tx))
				s.Note("outside", all(s.DB.QueryContext(oltp, "SELECT n FROM "+s.Table)))
				s.ended(tx)
			}
		})
	}},
	{Name: "transaction after an error in it", Needs: needs(sqlWords, tableWords), Run: func(s *Side) {
		s.withTable(func() {
			for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
				tx, err := s.DB.BeginTx(oltp, nil)
				if err != nil {
					s.Note("begin", err)
					continue
				}
				s.Note("insert", failed(tx.ExecContext(oltp, "INSERT INTO "+s.Table+" (n) VALUES (1)")))
				s.Note("again", failed(tx.ExecContext(oltp, "INSERT INTO "+s.Table+" (n) VALUES (1)")))
				s.Note("query", one(tx.QueryRowContext(oltp, "SELECT 1")))
				s.Note("end", end(tx))
				s.Note("outside", all(s.DB.QueryContext(oltp, "SELECT n FROM "+s.Table)))
				s.Note("clear", failed(s.DB.ExecContext(oltp, "DELETE FROM "+s.Table)))
			}
		})
	}},
	{Name: "transactions of one connection", Needs: sqlWords, Run: func(s *Side) {
		s.onConn(oltp, func(c *sql.Conn) {
			for range 2 {
				tx, err := c.BeginTx(oltp, nil)
				if err != nil {
					s.Note("begin", err)
					continue
				}
				s.Note("query", one(tx.QueryRowContext(oltp, "SELECT 1")))
				s.Note("commit", tx.Commit())
			}
			s.Note("query", one(c.QueryRowContext(oltp, "SELECT 1")))
		})
	}},
	{Name: "a transaction keeps its connection under every tag", Needs: needs(sqlWords, sessionWords), Run: func(s *Side) {
		s.withStmt(s.DB, s.Session, func(stmt *sql.Stmt) {
			s.inTx(oltp, nil, func(tx *sql.Tx) {
				home := one(tx.QueryRowContext(oltp, s.Session))
				for _, tag := range tags {
					s.Note("direct", one(tx.QueryRowContext(in(tag), s.Session)) == home)
					s.Note("by tx.Stmt", one(tx.StmtContext(in(tag), stmt).QueryRowContext(in(tag))) == home)
					s.withStmt(tx, s.Session, func(own *sql.Stmt) { s.Note("by a statement of its own", one(own.QueryRowContext(in(tag))) == home) })
				}
			})
		})
	}},
	{Name: "transactions of Begin without context", Needs: sqlWords, Run: func(s *Side) {
		tx, err := s.DB.Begin()
		if err != nil {
			s.Note("begin", err)
			return
		}
		s.Note("query", one(tx.QueryRow("SELECT 1")))
		s.Note("exec", failed(tx.Exec("SELECT 1")))
		s.Note("commit", tx.Commit())
	}},
}

func (s *Side) isolation(opts *sql.TxOptions) {
	ask := func(tx *sql.Tx, err error) {
		if err != nil {
			s.Note("begin", err)
			return
		}
		for _, query := range s.Words.Tx {
			s.Note(query, one(tx.QueryRowContext(oltp, query)))
		}
		s.Note("query", one(tx.QueryRowContext(oltp, "SELECT 1")))
		s.Note("commit", tx.Commit())
	}
	s.group("db", func() { ask(s.DB.BeginTx(oltp, opts)) })
	s.group("conn", func() { s.onConn(oltp, func(c *sql.Conn) { ask(c.BeginTx(oltp, opts)) }) })
	s.Note("next transaction", s.afterwards())
}

// afterwards is what a transaction without options is like now.
func (s *Side) afterwards() any {
	tx, err := s.DB.BeginTx(oltp, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var state []any
	for _, query := range s.Words.Tx {
		state = append(state, one(tx.QueryRowContext(oltp, query)))
	}
	return state
}

// ended records what a transaction answers when it is over.
func (s *Side) ended(tx *sql.Tx) {
	s.group("ended", func() {
		_, err := tx.PrepareContext(oltp, "SELECT 1")
		s.Note("exec", failed(tx.ExecContext(oltp, "SELECT 1")))
		s.Note("query", all(tx.QueryContext(oltp, "SELECT 1")))
		s.Note("query row", one(tx.QueryRowContext(oltp, "SELECT 1")))
		s.Note("prepare", err)
		s.Note("commit", tx.Commit())
		s.Note("rollback", tx.Rollback())
		ctx, cancel := context.WithCancel(oltp)
		cancel()
		s.Note("exec under a cancelled context", failed(tx.ExecContext(ctx, "SELECT 1")))
	})
}
