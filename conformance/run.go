package conformance

import (
	"context"
	"database/sql"
	"errors"
)

// runner is a *sql.DB, a *sql.Conn or a *sql.Tx.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// onEach runs f on the handle, on a connection of it and in a transaction.
func (s *Side) onEach(f func(r runner)) {
	s.group("db", func() { f(s.DB) })
	s.group("conn", func() { s.onConn(oltp, func(c *sql.Conn) { f(c) }) })
	s.group("tx", func() { s.inTx(oltp, nil, func(tx *sql.Tx) { f(tx) }) })
}

func (s *Side) onConn(ctx context.Context, f func(c *sql.Conn)) {
	c, err := s.DB.Conn(ctx)
	if err != nil {
		s.Note("Conn", err)
		return
	}
	f(c)
	s.Note("Conn.Close", c.Close())
}

// inTx rolls back what f did.
func (s *Side) inTx(ctx context.Context, opts *sql.TxOptions, f func(tx *sql.Tx)) {
	tx, err := s.DB.BeginTx(ctx, opts)
	if err != nil {
		s.Note("BeginTx", err)
		return
	}
	f(tx)
	s.Note("Rollback", tx.Rollback())
}

// underBoth runs f with the two kinds of contexts.
func (s *Side) underBoth(f func(ctx context.Context)) {
	s.group("a context that can end", func() {
		ctx, cancel := context.WithCancel(oltp)
		defer cancel()
		f(ctx)
	})
	s.group("a context that cannot", func() { f(oltp) })
}

func (s *Side) withStmt(r runner, query string, f func(stmt *sql.Stmt)) {
	stmt, err := r.PrepareContext(oltp, query)
	if err != nil {
		s.Note("Prepare", err)
		return
	}
	f(stmt)
	s.Note("Stmt.Close", stmt.Close())
}

// setup runs a statement that every driver must be able to run.
func (s *Side) setup(query string, args ...any) {
	if _, err := s.DB.ExecContext(oltp, query, args...); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
}

// withTable creates the table for f, and drops it.
func (s *Side) withTable(f func()) {
	s.setup("CREATE TABLE " + s.Table + " (" + s.Columns + ")")
	defer s.setup("DROP TABLE " + s.Table)
	f()
}

// all is everything that rows are: columns, values, result sets, errors.
func all(rows *sql.Rows, err error) any {
	if err != nil {
		return err
	}
	var out []any
	for {
		columns, err := rows.Columns()
		out = append(out, columns, err)
		for rows.Next() {
			values := make([]any, len(columns))
			dest := make([]any, len(columns))
			for i := range dest {
				dest[i] = &values[i]
			}
			if err := rows.Scan(dest...); err != nil {
				out = append(out, err)
			} else {
				out = append(out, values)
			}
		}
		if !rows.NextResultSet() {
			break
		}
	}
	return append(out, rows.Err(), rows.Close())
}

// one is the first value of the first row.
func one(row *sql.Row) any {
	var v any
	if err := row.Scan(&v); err != nil {
		return err
	}
	return v
}

// done is everything that a result is. A driver may return none at all, which panics in database/sql.
func done(res sql.Result, err error) (outcome any) {
	if err != nil {
		return err
	}
	defer func() {
		if v := recover(); v != nil {
			outcome = panicked{v}
		}
	}()
	id, idErr := res.LastInsertId()
	n, nErr := res.RowsAffected()
	return []any{"id", id, idErr, "affected", n, nErr}
}

// failed is an error without what came with it.
func failed(_ any, err error) any { return err }

// needs is a scenario's Needs: all of these words.
func needs(words ...func(w Words) bool) func(w Words) bool {
	return func(w Words) bool {
		for _, has := range words {
			if !has(w) {
				return false
			}
		}
		return true
	}
}

func sqlWords(w Words) bool     { return w.Arg != nil }
func tableWords(w Words) bool   { return w.Columns != "" }
func slowWords(w Words) bool    { return w.Slow != "" }
func sessionWords(w Words) bool { return w.Session != "" }

var errMine = errors.New("the caller's own error")
