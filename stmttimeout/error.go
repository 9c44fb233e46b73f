package stmttimeout

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"strings"
	"time"
)

// ErrExceeded is what errors.Is finds in the error of a statement that ran past its limit, whoever ended it. It is not
// found where the caller's own context ended the statement, where somebody cancelled it on the server, or where it waited
// too long for a lock under the server's lock timeout.
//
// The statement may have taken effect: a server that answers too late, or not at all, has perhaps committed.
var ErrExceeded = errors.New("stmttimeout: statement timeout exceeded")

// Error is the error of a statement that ran past its limit. errors.Is finds [ErrExceeded] and context.DeadlineExceeded
// in it, and what it finds in the driver's own error, with the two exceptions of [Error.Unwrap].
type Error struct {
	// Limit is the limit that was exceeded: the smaller of the pool's, the context's and the session's.
	Limit time.Duration
	// Elapsed is how long the statement ran as the client saw it, network included.
	Elapsed time.Duration
	// ByServer says that the server ended the statement, and the connection is healthy. Otherwise the client guard did, and
	// the connection was given up.
	ByServer bool
	// Err is the driver's error as it came. It may be nil.
	Err error
}

// Error says the limit, the time the statement ran, who ended it, and the driver's text. It holds no SQL and no arguments
// of its own.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("stmttimeout: limit of ")
	b.WriteString(e.Limit.String())
	b.WriteString(" exceeded after ")
	b.WriteString(e.Elapsed.Round(time.Microsecond).String())
	if e.ByServer {
		b.WriteString(", ended by the server")
	} else {
		b.WriteString(", ended by the client guard")
	}
	if e.Unwrap() != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Is reports whether target is one of the two sentinels that every exceeded limit is.
func (e *Error) Is(target error) bool {
	return target == ErrExceeded || target == context.DeadlineExceeded
}

// Unwrap returns the driver's error, except where that would mislead, and then nil: database/sql would run the statement
// again on a driver.ErrBadConn, and a caller would take the context.Canceled that the guard caused for a client that has
// left. The field Err keeps both.
func (e *Error) Unwrap() error {
	if errors.Is(e.Err, sqldriver.ErrBadConn) || errors.Is(e.Err, context.Canceled) {
		return nil
	}
	return e.Err
}

// Timeout returns true, as net.Error and os.IsTimeout have it.
func (e *Error) Timeout() bool { return true }
