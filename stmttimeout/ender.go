package stmttimeout

import (
	"context"
	"errors"
	"strings"
	"time"
)

// An Ender is a Dialect that can end a statement from another session. A client that has given a statement up has not
// ended it: go-sql-driver/mysql closes its socket, and the server goes on.
type Ender interface {
	Dialect

	// Control makes s a session that ends statements: it can be told from others in the server's list, and limits its own.
	Control(ctx context.Context, s Session) error

	// End asks the server, over session s, to end what the victim is doing: politely, or, with force, together with its
	// session. The victim is Applied.Session of a connection that is given up. It reports whether the session is gone by now
	// from the server; if not, ask again. The error is ErrOtherServer, or that of the server or the driver.
	End(ctx context.Context, s Session, victim string, force bool) (gone bool, err error)
}

// controlTimeout limits the statements of a control session.
const controlTimeout = 2 * time.Second

// ErrOtherServer: the session that was to end a statement is on another server than the statement, or the server has
// been restarted since. Nothing was ended: sessions have numbers, and that number may be somebody else's there.
var ErrOtherServer = errors.New("stmttimeout: connected to another server than the statement runs on")

// A session is known by its number, by what makes the number unambiguous, and by its server.
type sessionID struct{ number, since, server string }

// sessionSep separates them; it is in none.
const sessionSep = "|"

func parseSession(text string) (id sessionID, ok bool) {
	parts := strings.SplitN(text, sessionSep, 3)
	if len(parts) != 3 || parts[0] == "" || strings.Trim(parts[0], "0123456789") != "" {
		return sessionID{}, false
	}
	return sessionID{parts[0], parts[1], parts[2]}, true
}

// end asks with query, whose row is the server and what it shows of the victim's session, NULL if that is gone, and then
// gives the order.
func (id sessionID) end(ctx context.Context, s Session, query string, order func(context.Context) error) (gone bool, err error) {
	row, err := s.QueryRow(ctx, query)
	if err != nil {
		return false, err
	}
	if len(row) != 2 {
		return false, errors.New("stmttimeout: the server does not tell which it is")
	}
	if server, ok := textOf(row[0]); !ok || server != id.server {
		return false, ErrOtherServer
	}
	if row[1] == nil {
		return true, nil
	}
	return false, order(ctx)
}
