package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"io"
)

// Session runs single statements on a connection that is not lent: set-up, and the question which server it is.
type Session struct{ raw raw }

// NewSession returns a Session on conn.
func NewSession(conn sqldriver.Conn) *Session { return &Session{newRaw(conn)} }

// Session returns a Session on the connection for its Lender. What is wrapped is not looked for again: a wrapper that is in use
// may be writing its fields.
func (p *Physical) Session() *Session { return &Session{p.raw} }

// Ping pings the server, where the driver can.
func (s *Session) Ping(ctx context.Context) error { return s.raw.ping(ctx) }

// QueryRow returns the first row of a statement without arguments, or nil if it has none.
func (s *Session) QueryRow(ctx context.Context, query string) ([]sqldriver.Value, error) {
	if s.raw.canQuery() {
		r, err := s.raw.query(ctx, query, unprepared(s.raw.inner))
		if !errors.Is(err, sqldriver.ErrSkip) {
			return firstRow(r, err)
		}
	}
	stmt, err := s.raw.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	return firstRow(queryStmt(ctx, stmt, nil))
}

// Exec runs a statement without arguments.
func (s *Session) Exec(ctx context.Context, query string) error {
	if s.raw.canExec() {
		_, err := s.raw.exec(ctx, query, nil)
		if !errors.Is(err, sqldriver.ErrSkip) {
			return err
		}
	}
	stmt, err := s.raw.prepare(ctx, query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	_, err = execStmt(ctx, stmt, nil)
	return err
}

func firstRow(r sqldriver.Rows, err error) ([]sqldriver.Value, error) {
	if err != nil {
		return nil, err
	}
	row := make([]sqldriver.Value, len(r.Columns()))
	if err = r.Next(row); err != nil {
		row = nil
	}
	for i, v := range row {
		if b, ok := v.([]byte); ok {
			row[i] = string(b) // it is the driver's memory
		}
	}
	closed := r.Close()
	if err == nil || err == io.EOF {
		err = closed
	}
	return row, err
}
