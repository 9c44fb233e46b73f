package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// soon is when a call that runs is cancelled, where the server cannot be asked.
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
					s.whileRunning("query", end, s.Slow, func(ctx context.Context, text string) any { return all(r.QueryContext(ctx, text)) })
				})
				s.onEach(func(r runner) {
					s.whileRunning("query row", end, s.Slow, func(ctx context.Context, text string) any { return one(r.QueryRowContext(ctx, text)) })
				})
				s.onEach(func(r runner) {
					s.whileRunning("exec", end, s.slowExec(), func(ctx context.Context, text string) any { return failed(r.ExecContext(ctx, text)) })
				})
				s.whileRunning("prepared", end, s.Slow, func(ctx context.Context, text string) (outcome any) {
					s.withStmt(s.DB, text, func(stmt *sql.Stmt) { outcome = all(stmt.QueryContext(ctx)) })
					return outcome
				})
				s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
			})
		}
	}},
	{Name: "cancelled between rows", Needs: func(w Words) bool { return w.Many != "" }, Run: func(s *Side) {
		s.onRows(s.Many, func(rows *sql.Rows, cancel func()) any {
			first := rows.Next()
			cancel()
			untilClosed(rows)
			return []any{first, rows.Next(), rows.Err(), rows.Close()}
		})
	}},
	{Name: "cancelled while rows are waited for", Needs: func(w Words) bool { return w.Stalls != "" }, Run: func(s *Side) {
		s.onRows(s.Stalls, func(rows *sql.Rows, cancel func()) any {
			first := rows.Next()
			time.AfterFunc(soon, cancel)
			for rows.Next() {
			}
			untilClosed(rows)
			return []any{first, rows.Err() != nil, rows.Close()} // database/sql's error, or the driver's: it is a race
		})
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
				s.whileRunning("slow", byDeadline, s.Slow, func(ctx context.Context, text string) any { return all(tx.QueryContext(ctx, text)) })
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
			s.Note("commit", commitLate(tx))
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

// ending is a way in which the context of a statement that runs ends.
type ending struct {
	name     string
	deadline bool
}

var byDeadline, byCancel = ending{"deadline", true}, ending{"cancel", false}

// commitLate is the error of a Commit whose context has ended. database/sql's own rollback may have come first.
func commitLate(tx *sql.Tx) error {
	err := tx.Commit()
	if err == sql.ErrTxDone {
		return context.Canceled
	}
	return err
}

// whileRunning records what f returns under a context that ends while the server runs the text. It is cancelled when the
// server says that it does; a deadline that passed sooner, on a busy machine, has the scenario repeated with a later one.
func (s *Side) whileRunning(name string, end ending, text string, f func(ctx context.Context, text string) any) {
	s.Note("before", one(s.DB.QueryRowContext(oltp, "SELECT 1"))) // the end is not for the dial
	ctx, cancel := context.WithCancel(oltp)
	if end.deadline {
		ctx, cancel = context.WithTimeout(oltp, s.soon)
	}
	defer cancel()
	if s.Running == "" {
		if !end.deadline {
			time.AfterFunc(s.soon, cancel)
		}
		s.Note(name, f(ctx, text))
		return
	}
	text = s.mark(text)
	over, seen := make(chan struct{}), make(chan bool, 1)
	go func() {
		running := s.seesRunning(text, over)
		seen <- running && ctx.Err() == nil
		if running && !end.deadline {
			cancel()
		}
	}()
	s.Note(name, f(ctx, text))
	close(over)
	s.late = !<-seen && end.deadline || s.late
}

// mark tells a text from all others.
func (s *Side) mark(text string) string { return fmt.Sprintf("%s -- marked%d", text, marks.Add(1)) }

var marks atomic.Int64

// seesRunning asks the server whether it runs the text, until it does or the call is over.
func (s *Side) seesRunning(text string, over <-chan struct{}) bool {
	if s.watcher == nil {
		s.watcher = s.plain(s.TB, 0)
	}
	for {
		n := 0
		if err := s.watcher.QueryRowContext(oltp, fmt.Sprintf(s.Running, text[strings.LastIndex(text, "marked"):])).Scan(&n); err != nil || n > 0 {
			return err == nil
		}
		select {
		case <-over:
			return false
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// underEnded uses a context that has ended wherever one can be used.
func (s *Side) underEnded(ctx context.Context) {
	s.Note("ping", s.DB.PingContext(ctx))
	_, err := s.DB.Conn(ctx)
	s.Note("conn", err)
	_, err = s.DB.BeginTx(ctx, nil)
	s.Note("begin", err)
	s.endedOn(ctx, "db", func(use func(r runner)) { use(s.DB) })
	s.withStmt(s.DB, "SELECT 1", func(stmt *sql.Stmt) {
		s.Note("prepared query", all(stmt.QueryContext(ctx)))
		s.Note("prepared exec", failed(stmt.ExecContext(ctx)))
	})
	if s.RacesEnded {
		s.unrecorded(func() { s.endedInDriver(ctx) })
	} else {
		s.endedInDriver(ctx)
	}
	s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
}

// endedInDriver uses it where it is not database/sql that notices.
func (s *Side) endedInDriver(ctx context.Context) {
	s.endedOn(ctx, "conn", func(use func(r runner)) { s.onConn(oltp, func(c *sql.Conn) { use(c) }) })
	s.endedOn(ctx, "tx", func(use func(r runner)) { s.inTx(oltp, nil, func(tx *sql.Tx) { use(tx) }) })
	s.onConn(oltp, func(c *sql.Conn) { _, err := c.BeginTx(ctx, nil); s.Note("begin on a connection", err) })
	s.onConn(oltp, func(c *sql.Conn) { s.Note("ping on a connection", c.PingContext(ctx)) })
	s.withStmt(s.DB, "SELECT 1", func(stmt *sql.Stmt) {
		s.inTx(oltp, nil, func(tx *sql.Tx) { s.Note("tx.Stmt", one(tx.StmtContext(ctx, stmt).QueryRowContext(ctx))) })
	})
	s.onConn(oltp, func(c *sql.Conn) {
		s.withStmt(c, "SELECT 1", func(stmt *sql.Stmt) { s.Note("prepared on a connection", all(stmt.QueryContext(ctx))) })
	})
}

// endedOn uses it for each kind of call, on a runner of its own.
func (s *Side) endedOn(ctx context.Context, name string, on func(use func(r runner))) {
	s.group(name, func() {
		on(func(r runner) { s.Note("query", all(r.QueryContext(ctx, "SELECT 1"))) })
		on(func(r runner) { s.Note("query row", one(r.QueryRowContext(ctx, "SELECT 1"))) })
		on(func(r runner) { s.Note("exec", failed(r.ExecContext(ctx, "SELECT 1"))) })
		on(func(r runner) { s.Note("prepare", failed(r.PrepareContext(ctx, "SELECT 1"))) })
	})
}

// onRows records what f makes of the rows of a text, direct and prepared, whose context it can cancel.
func (s *Side) onRows(text string, f func(rows *sql.Rows, cancel func()) any) {
	try := func(query func(ctx context.Context) (*sql.Rows, error)) any {
		ctx, cancel := context.WithCancel(oltp)
		defer cancel()
		rows, err := query(ctx)
		if err != nil {
			return err
		}
		return f(rows, cancel)
	}
	on := func(r runner) any {
		return try(func(ctx context.Context) (*sql.Rows, error) { return r.QueryContext(ctx, text) })
	}
	var onConn, onTx any
	s.unrecorded(func() { // a driver that breaks the connection does so beside its caller: the end of neither is steady
		s.onConn(oltp, func(c *sql.Conn) { onConn = on(c) })
		s.inTx(oltp, nil, func(tx *sql.Tx) { onTx = on(tx) })
	})
	s.Note("rows", "db", on(s.DB), "conn", onConn, "tx", onTx)
	s.withStmt(s.DB, text, func(stmt *sql.Stmt) {
		s.Note("prepared", try(func(ctx context.Context) (*sql.Rows, error) { return stmt.QueryContext(ctx) }))
	})
	s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
}

// untilClosed waits for database/sql to close rows whose context has ended, which it does beside the caller.
func untilClosed(rows *sql.Rows) {
	for {
		if _, err := rows.Columns(); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
