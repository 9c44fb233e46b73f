package fakedb

import (
	"errors"
	"fmt"
)

// Error is an error of the server in the shape of pgx's and lib/pq's: it has a SQLSTATE.
type Error struct {
	Code    string
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code) }

// SQLState returns the five letters of the code.
func (e *Error) SQLState() string { return e.Code }

// MySQLError is an error of the server in the shape of go-sql-driver/mysql's: a number, and SQLState is no method.
type MySQLError struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *MySQLError) Error() string {
	return fmt.Sprintf("Error %d (%s): %s", e.Number, e.SQLState[:], e.Message)
}

// timeoutErrors and cancelErrors are keyed by the flavour that follows the command.
var (
	timeoutErrors = map[string]error{
		"":      &Error{Code: "57014", Message: "canceling statement due to statement timeout"},
		"de":    &Error{Code: "57014", Message: "storniere Anfrage wegen Zeitüberschreitung der Anfrage"},
		"mysql": mysqlError(3024, "HY000", "Query execution was interrupted, maximum statement execution time exceeded"),
		"mariadb": mysqlError(1969, "70100",
			"Query execution was interrupted (max_statement_time exceeded)"),
	}
	cancelErrors = map[string]error{
		"":   &Error{Code: "57014", Message: "canceling statement due to user request"},
		"de": &Error{Code: "57014", Message: "storniere Anfrage wegen Benutzeraufforderung"},
	}
)

// errTerminated ends a call during which the connection was killed. It is not driver.ErrBadConn: that promises that
// nothing was executed.
var errTerminated = &Error{Code: "57P01", Message: "terminating connection due to administrator command"}

// Errors of a misused driver. They are not driver.ErrBadConn, so that database/sql does not retry them out of sight.
var (
	errConnClosed      = errors.New("fakedb: connection is closed")
	errStmtClosed      = errors.New("fakedb: statement is closed")
	errRowsClosed      = errors.New("fakedb: rows are closed")
	errConnectorClosed = errors.New("fakedb: connector is closed")
	errTxOpen          = errors.New("fakedb: a transaction is open already")
	errTxEnded         = errors.New("fakedb: the transaction has ended already")
)

func mysqlError(number uint16, state, message string) error {
	return &MySQLError{Number: number, SQLState: [5]byte([]byte(state)), Message: message}
}

func errf(code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
