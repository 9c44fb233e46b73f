package stmttimeout

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
)

// scriptedSession answers every query with row, and every call with err if there is one. It keeps what it was sent.
type scriptedSession struct {
	row  []sqldriver.Value
	err  error
	sent []string
}

var _ Session = (*scriptedSession)(nil)

func (s *scriptedSession) QueryRow(_ context.Context, query string) ([]sqldriver.Value, error) {
	s.sent = append(s.sent, query)
	if s.err != nil {
		return nil, s.err
	}
	return s.row, nil
}

func (s *scriptedSession) Exec(_ context.Context, query string) error {
	s.sent = append(s.sent, query)
	return s.err
}

// thisSession is what the scripted session is known by.
const thisSession = "7|10.0.0.1:4711|db1:3306:1"

// answering has row and the session's identity behind it; without a row, nothing.
func answering(row ...sqldriver.Value) *scriptedSession {
	if row != nil {
		row = append(row, thisSession)
	}
	return &scriptedSession{row: row}
}

// pooledAnswering is a pooler's session, which has no identity.
func pooledAnswering(row ...sqldriver.Value) *scriptedSession { return &scriptedSession{row: row} }

// pgError has the shape of pgx's error: a field Message, and a text made of more than it.
type pgError struct {
	Severity, Code, Message string
}

func (e *pgError) Error() string    { return e.Severity + ": " + e.Message + " (SQLSTATE " + e.Code + ")" }
func (e *pgError) SQLState() string { return e.Code }

// pqError has the shape of lib/pq's, whose code is a type of its own.
type pqError struct {
	Code    pqCode
	Message string
}

type pqCode string

func (e *pqError) Error() string    { return "pq: " + e.Message + " (" + string(e.Code) + ")" }
func (e *pqError) SQLState() string { return string(e.Code) }

// stateError has the method alone, and a text.
type stateError struct{ code, text string }

func (e stateError) Error() string    { return e.text }
func (e stateError) SQLState() string { return e.code }

// myError has the shape of go-sql-driver's.
type myError struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *myError) Error() string { return fmt.Sprintf("Error %d: %s", e.Number, e.Message) }

// listError unwraps to several errors.
type listError []error

func (l listError) Error() string   { return fmt.Sprint([]error(l)) }
func (l listError) Unwrap() []error { return l }

var errOther = errors.New("some other error")
