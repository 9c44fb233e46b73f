package conformance

import (
	"context"
	"database/sql"
	"time"
)

// soon is when a call that runs is cancelled.
const soon = 100 * time.Millisecond

var cancelScenarios = []Scenario{
	{Name: "a context that has ended", Unsteady: true, Needs: sqlWords, Run: func(s *Side) {
		s.group("cancelled", func() { s.underEnded(cancelled(nil)) })
		s.group("cancelled for a cause", func() { s.underEnded(cancelled(errMine)) })
		s.group("past its deadline", func() { s.underEnded(late()) })
	}},
	{Name: "cancelled while a statement runs", Unsteady: true, Needs: slowWords, Run: func(s *Side) {
		for _, end := range []ending{byDeadline, byCancel} {
			s.group(end.name, func() {
				s.onEach(func(r runner) {
					s.under(end, func(ctx context.Context) { s.Note("query", all(r.QueryContext(ctx, s.Slow))) })
				})
				s.onEach(func(r runner) {
					s.under(end, func(ctx context.Context) { s.Note("query row", one(r.QueryRowContext(ctx, s.Slow))) })
				})
				s.onEach(func(r runner) {
					s.under(end, func(ctx context.Context) { s.Note("exec", failed(r.ExecContext(ctx, s.slowExec()))) })
				})
				s.withStmt(s.DB, s.Slow, func(stmt *sql.Stmt) {
					s.under(end, func(ctx context.Context) { s.Note("prepared", all(stmt.QueryContext(ctx))) })
				})
				s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
			})
		}
	}},
	{Name: "cancelled while rows are read", Unsteady: true, Needs: func(w Words) bool { return w.Many != "" }, Run: func(s *Side) {
		s.onEach(func(r runner) { s.Note("rows", s.cancelInRows(r.QueryContext)) })
		s.withStmt(s.DB, s.Many, func(stmt *sql.Stmt) {
			s.Note("prepared", s.cancelInRows(func(ctx context.Context, _ string, args ...any) (*sql.Rows, error) {
				return stmt.QueryContext(ctx, args...)
			}))
		})
		s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
	}},
	{Name: "cancelled while a transaction is open", Unsteady: true, Needs: needs(sqlWords, tableWords), Run: func(s *Side) {
		s.withTable(func() {
			ctx, cancel := context.WithCancel(oltp)
			tx, err := s.DB.BeginTx(ctx, nil)
			if err != nil {
				s.Note("begin", err)
				cancel()
				return
			}
			s.Note("insert", failed(tx.ExecContext(oltp, "INSERT INTO "+s.Table+" (n) VALUES (1)")))
			cancel()
			tx.Rollback() // if database/sql has not done so by now
			s.Note("exec", failed(tx.ExecContext(oltp, "SELECT 1")))
			s.Note("commit", tx.Commit())
			s.Note("rows", all(s.DB.QueryContext(oltp, "SELECT n FROM "+s.Table)))
		})
	}},
	{Name: "a statement of a transaction cancelled", Unsteady: true, Needs: needs(slowWords, tableWords), Run: func(s *Side) {
		s.withTable(func() {
			for _, finish := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
				tx, err := s.DB.BeginTx(oltp, nil)
				if err != nil {
					s.Note("begin", err)
					return
				}
				s.Note("insert", failed(tx.ExecContext(oltp, "INSERT INTO "+s.Table+" (n) VALUES (1)")))
				s.under(byDeadline, func(ctx context.Context) { s.Note("slow", all(tx.QueryContext(ctx, s.Slow))) })
				s.Note("next statement", one(tx.QueryRowContext(oltp, "SELECT 1")))
				s.Note("end", finish(tx))
				s.Note("rows", all(s.DB.QueryContext(oltp, "SELECT n FROM "+s.Table)))
			}
		})
	}},
	{Name: "commit under a context that has ended", Unsteady: true, Needs: needs(sqlWords, tableWords), Run: func(s *Side) {
		s.withTable(func() {
			ctx, cancel := context.WithCancel(oltp)
			tx, err := s.DB.BeginTx(ctx, nil)
			if err != nil {
				s.Note("begin", err)
				cancel()
				return
			}
			s.Note("insert", failed(tx.ExecContext(ctx, "INSERT INTO "+s.Table+" (n) VALUES (1)")))
			cancel()
			s.Note("commit", tx.Commit())
			s.Note("rows", all(s.DB.QueryContext(oltp, "SELECT n FROM "+s.Table)))
		})
	}},
	{Name: "cancelled after its end", Conns: 1, Needs: sqlWords, Run: func(s *Side) {
		for range 5 {
			ctx, cancel := context.WithCancel(oltp)
			s.Note("query", one(s.DB.QueryRowContext(ctx, "SELECT 1")))
			s.Note("exec", failed(s.DB.ExecContext(ctx, "SELECT 1")))
			cancel()
			s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
		}
	}},
}

func (s *Side) slowExec() string {
	if s.SlowSet != "" {
		return s.SlowSet
	}
	return s.Slow
}

func cancelled(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(oltp)
	cancel(cause)
	return ctx
}

func late() context.Context {
	ctx, cancel := context.WithDeadline(oltp, time.Now().Add(-time.Second))
	cancel()
	return ctx
}

// ending is a way in which a context ends soon.
type ending struct {
	name   string
	newCtx func() (context.Context, context.CancelFunc)
}

var (
	byDeadline = ending{"deadline", func() (context.Context, context.CancelFunc) { return context.WithTimeout(oltp, soon) }}
	byCancel   = ending{"cancel", func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(oltp)
		time.AfterFunc(soon, cancel)
		return ctx, cancel
	}}
)

// under runs f with a context that ends soon, but not before there is a connection.
func (s *Side) under(end ending, f func(ctx context.Context)) {
	s.Note("before", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
	ctx, cancel := end.newCtx()
	defer cancel()
	f(ctx)
}

// underEnded uses a context that has ended wherever one can be used.
func (s *Side) underEnded(ctx context.Context) {
	s.Note("ping", s.DB.PingContext(ctx))
	_, err := s.DB.Conn(ctx)
	s.Note("conn", err)
	_, err = s.DB.BeginTx(ctx, nil)
	s.Note("begin", err)
	s.onEach(func(r runner) { s.Note("query", all(r.QueryContext(ctx, "SELECT 1"))) })
	s.onEach(func(r runner) { s.Note("query row", one(r.QueryRowContext(ctx, "SELECT 1"))) })
	s.onEach(func(r runner) { s.Note("exec", failed(r.ExecContext(ctx, "SELECT 1"))) })
	s.onEach(func(r runner) { _, err := r.PrepareContext(ctx, "SELECT 1"); s.Note("prepare", err) })
	s.onConn(oltp, func(c *sql.Conn) { _, err := c.BeginTx(ctx, nil); s.Note("begin on a connection", err) })
	s.onConn(oltp, func(c *sql.Conn) { s.Note("ping on a connection", c.PingContext(ctx)) })
	s.withStmt(s.DB, "SELECT 1", func(stmt *sql.Stmt) {
		s.Note("prepared query", all(stmt.QueryContext(ctx)))
		s.Note("prepared exec", failed(stmt.ExecContext(ctx)))
		s.inTx(oltp, nil, func(tx *sql.Tx) { s.Note("tx.Stmt", one(tx.StmtContext(ctx, stmt).QueryRowContext(ctx))) })
	})
	s.onConn(oltp, func(c *sql.Conn) {
		s.withStmt(c, "SELECT 1", func(stmt *sql.Stmt) { s.Note("prepared on a connection", all(stmt.QueryContext(ctx))) })
	})
	s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
}

// cancelInRows cancels after the first row and reads on until it is noticed.
func (s *Side) cancelInRows(query func(context.Context, string, ...any) (*sql.Rows, error)) any {
	ctx, cancel := context.WithCancel(oltp)
	defer cancel()
	rows, err := query(ctx, s.Many)
	if err != nil {
		return err
	}
	first := rows.Next()
	cancel()
	for rows.Next() {
	}
	return []any{first, rows.Err(), rows.Close()}
}
