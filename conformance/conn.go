package conformance

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
)

var connScenarios = []Scenario{
	{Name: "session of a connection", Conns: 4, Needs: func(w Words) bool { return w.Show != "" }, Run: func(s *Side) {
		s.onConn(oltp, func(c *sql.Conn) {
			s.Note("before", one(c.QueryRowContext(oltp, s.Show)))
			s.Note("set", failed(c.ExecContext(oltp, s.Set)))
			for _, tag := range tags {
				s.Note("afterwards", one(c.QueryRowContext(in(tag), s.Show)))
			}
			s.onConn(oltp, func(other *sql.Conn) { s.Note("of another", one(other.QueryRowContext(oltp, s.Show))) })
			s.withStmt(c, s.Show, func(stmt *sql.Stmt) { s.Note("prepared", one(stmt.QueryRowContext(oltp))) })
			tx, err := c.BeginTx(oltp, nil)
			if err != nil {
				s.Note("begin", err)
				return
			}
			s.Note("in a transaction", one(tx.QueryRowContext(oltp, s.Show)))
			s.Note("commit", tx.Commit())
		})
	}},
	{Name: "session that the next borrower gets", Conns: 1, Needs: func(w Words) bool { return w.Show != "" }, Run: func(s *Side) {
		s.onConn(oltp, func(c *sql.Conn) { s.Note("set", failed(c.ExecContext(oltp, s.Set))) })
		s.Note("the next", one(s.DB.QueryRowContext(oltp, s.Show)))
		s.inTx(oltp, nil, func(tx *sql.Tx) { s.Note("a transaction", one(tx.QueryRowContext(oltp, s.Show))) })
	}},
	{Name: "temporary table of a connection", Conns: 1, Needs: tableWords, Run: func(s *Side) {
		s.onConn(oltp, func(c *sql.Conn) {
			s.Note("create", failed(c.ExecContext(oltp, "CREATE TEMPORARY TABLE "+s.Table+" (n int)")))
			s.Note("insert", failed(c.ExecContext(oltp, "INSERT INTO "+s.Table+" VALUES (1)")))
			s.Note("read", all(c.QueryContext(oltp, "SELECT n FROM "+s.Table)))
		})
		s.Note("the next borrower", all(s.DB.QueryContext(oltp, "SELECT n FROM "+s.Table)))
		s.Note("drop", failed(s.DB.ExecContext(oltp, "DROP TABLE "+s.Table)))
	}},
	{Name: "one session from checkout to return", Conns: 2, Needs: sessionWords, Run: func(s *Side) {
		s.onConn(oltp, func(c *sql.Conn) {
			home := one(c.QueryRowContext(oltp, s.Session))
			for range 3 {
				s.Note("same session", one(c.QueryRowContext(oltp, s.Session)) == home, c.PingContext(oltp))
			}
			s.onConn(oltp, func(other *sql.Conn) { s.Note("another", one(other.QueryRowContext(oltp, s.Session)) == home) })
			s.Note("raw", s.Raw(c, func(any) error { return nil }))
			s.Note("still", one(c.QueryRowContext(oltp, s.Session)) == home)
		})
	}},
	{Name: "a connection that was closed", Run: func(s *Side) {
		c, err := s.DB.Conn(oltp)
		if err != nil {
			s.Note("conn", err)
			return
		}
		s.Note("close", c.Close(), c.Close())
		_, beginErr := c.BeginTx(oltp, nil)
		_, prepareErr := c.PrepareContext(oltp, "SELECT 1")
		s.Note("use", failed(c.ExecContext(oltp, "SELECT 1")), all(c.QueryContext(oltp, "SELECT 1")), beginErr, prepareErr,
			c.PingContext(oltp), s.Raw(c, func(any) error { return nil }))
	}},
	{Name: "ping", Run: func(s *Side) {
		s.Note("db", s.DB.PingContext(oltp), s.DB.Ping())
		s.onConn(oltp, func(c *sql.Conn) { s.Note("conn", c.PingContext(oltp)) })
	}},
	{Name: "raw", Run: func(s *Side) {
		s.Note("driver", fmt.Sprintf("%T", s.DB.Driver()))
		s.onConn(oltp, func(c *sql.Conn) {
			s.Note("partition.Raw", s.Raw(c, func(dc any) error { s.Note("type", fmt.Sprintf("%T", dc)); return nil }))
			s.Note(nameOfRaw, c.Raw(func(dc any) error { s.Note(nameOfRaw+", type", fmt.Sprintf("%T", dc)); return nil }))
			s.Note("error", s.Raw(c, func(any) error { return errMine }))
		})
	}},
	{Name: "raw that makes the connection bad", Conns: 1, Needs: sessionWords, Run: func(s *Side) {
		for _, end := range rawEnds {
			name, before := end.name, one(s.DB.QueryRowContext(oltp, s.Session))
			c, err := s.DB.Conn(oltp)
			if err != nil {
				s.Note("conn", err)
				continue
			}
			s.Try(name, func() any { return s.Raw(c, end.f) })
			s.Note(name+", query", all(c.QueryContext(oltp, "SELECT 1")))
			s.Note(name+", close", c.Close())
			s.Note(name+", the session is the same", one(s.DB.QueryRowContext(oltp, s.Session)) == before)
		}
	}},
}

// nameOfRaw is a behaviour that is accepted to be different.
const nameOfRaw = "(*sql.Conn).Raw"

var rawEnds = []struct {
	name string
	f    func(any) error
}{
	{"ErrBadConn", func(any) error { return sqldriver.ErrBadConn }},
	{"ErrBadConn wrapped", func(any) error { return fmt.Errorf("mine: %w", sqldriver.ErrBadConn) }},
	{"panic", func(any) error { panic("mine") }},
}
