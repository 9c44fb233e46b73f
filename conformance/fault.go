package conformance

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
)

var faultScenarios = []Scenario{
	{Name: "a session that is killed", Unsteady: true, Needs: func(w Words) bool { return w.Kill != "" }, Run: func(s *Side) {
		s.group("exec", func() { s.killed(func(r runner) any { return failed(r.ExecContext(oltp, "SELECT 1")) }) })
		s.group("query", func() { s.killed(func(r runner) any { return one(r.QueryRowContext(oltp, "SELECT 1")) }) })
		s.group("prepare", func() { s.killed(func(r runner) any { return failed(r.PrepareContext(oltp, "SELECT 1")) }) })
	}},
	{Name: "a killed session that is idle", Conns: 1, Unsteady: true, Needs: func(w Words) bool { return w.Kill != "" }, Run: func(s *Side) {
		s.withKiller(func(kill func(id any)) {
			for range 2 {
				kill(one(s.DB.QueryRowContext(oltp, s.Session)))
				s.Note("query", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
				kill(one(s.DB.QueryRowContext(oltp, s.Session)))
				s.Note("exec", failed(s.DB.ExecContext(oltp, "SELECT 1")))
				kill(one(s.DB.QueryRowContext(oltp, s.Session)))
				s.inTx(oltp, nil, func(tx *sql.Tx) { s.Note("transaction", one(tx.QueryRowContext(oltp, "SELECT 1"))) })
			}
		})
	}},
	{Name: "panics in Valuers", Needs: sqlWords, Run: func(s *Side) {
		text := s.cast("SELECT ", s.Casts[0])
		for range 4 {
			s.Try("query", func() any { return all(s.DB.QueryContext(oltp, text, panicker{})) })
			s.Try("exec", func() any { return failed(s.DB.ExecContext(oltp, text, panicker{})) })
			s.withStmt(s.DB, text, func(stmt *sql.Stmt) {
				s.Try("prepared query", func() any { return all(stmt.QueryContext(oltp, panicker{})) })
				s.Try("prepared exec", func() any { return failed(stmt.ExecContext(oltp, panicker{})) })
			})
		}
		s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
	}},
	{Name: "panics beside Scan", Conns: 2, Needs: sqlWords, Run: func(s *Side) {
		for range 4 {
			s.Try("rows", func() any {
				rows, err := s.DB.QueryContext(oltp, "SELECT 1")
				if err != nil {
					return err
				}
				defer rows.Close()
				for rows.Next() {
					panic(errMine)
				}
				return rows.Err()
			})
		}
		s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
	}},
	{Name: "the handle after it was closed", Needs: sqlWords, Run: func(s *Side) {
		stmt, err := s.DB.PrepareContext(oltp, "SELECT 1")
		s.Note("prepare", err)
		s.Note("close", s.DB.Close())
		_, connErr := s.DB.Conn(oltp)
		_, beginErr := s.DB.BeginTx(oltp, nil)
		_, prepareErr := s.DB.PrepareContext(oltp, "SELECT 1")
		s.Note("use", connErr, beginErr, prepareErr, failed(s.DB.ExecContext(oltp, "SELECT 1")), all(s.DB.QueryContext(oltp, "SELECT 1")),
			one(s.DB.QueryRowContext(oltp, "SELECT 1")), s.DB.PingContext(oltp))
		if stmt != nil {
			s.Note("statement", failed(stmt.ExecContext(oltp)), stmt.Close())
		}
	}},
}

// panicker panics where arguments are converted.
type panicker struct{}

func (panicker) Value() (sqldriver.Value, error) { panic(errMine) }

func (s *Side) withKiller(f func(kill func(id any))) {
	killer := s.plain(s.TB, 0)
	defer killer.Close()
	f(func(id any) {
		if _, err := killer.ExecContext(oltp, fmt.Sprintf(s.Kill, id)); err != nil {
			s.Fatalf("kill: %v", err)
		}
		for n := 1; n > 0; { // the session ends in its own time
			if err := killer.QueryRowContext(oltp, fmt.Sprintf(s.Alive, id)).Scan(&n); err != nil {
				s.Fatalf("killed: %v", err)
			}
		}
	})
}

// killed uses a connection, and a transaction, whose session is gone.
func (s *Side) killed(use func(r runner) any) {
	s.withKiller(func(kill func(id any)) {
		s.onConn(oltp, func(c *sql.Conn) {
			kill(one(c.QueryRowContext(oltp, s.Session)))
			s.Note("conn", use(c))
			s.Note("once more", use(c))
		})
		s.inTx(oltp, nil, func(tx *sql.Tx) {
			kill(one(tx.QueryRowContext(oltp, s.Session)))
			s.Note("tx", use(tx))
			s.Note("once more", use(tx))
		})
		s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
	})
}
