package partition

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
)

// lane is a way to a server that never waits for a pool: statements that have to be ended are ended over it. It has
// connections of its own, at most two, opened when they are first needed; in the server's list they can be told from others
// (see stmttimeout.Ender).
type lane struct {
	mu     sync.Mutex // guards the two fields below
	db     *sql.DB
	closed bool

	problem atomic.Pointer[string] // nil: none
}

const (
	laneConns    = 2
	laneIdleTime = time.Minute
)

// trouble is what went wrong of late, empty if nothing did.
func (l *lane) trouble() string {
	if p := l.problem.Load(); p != nil {
		return *p
	}
	return ""
}

// note remembers how the lane does, and logs a problem when it is new.
func (l *lane) note(err error, log *slog.Logger) {
	if err == nil {
		if l.problem.Load() != nil {
			l.problem.Store(nil)
		}
		return
	}
	text := err.Error()
	if old := l.problem.Swap(&text); old == nil || *old != text {
		log.Warn("a cancelled statement cannot be ended on the server: it may go on running there", "error", err)
	}
}

func (l *lane) open(s *server, d stmttimeout.Ender) (*sql.DB, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed()
	}
	if l.db == nil {
		l.db = sql.OpenDB(bounded{laneConnector{s.connector, d}})
		l.db.SetMaxOpenConns(laneConns)
		l.db.SetMaxIdleConns(laneConns)
		l.db.SetConnMaxIdleTime(laneIdleTime)
	}
	return l.db, nil
}

func (l *lane) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.db == nil {
		return nil
	}
	return l.db.Close()
}

// end asks the server once to end a session's statement: see stmttimeout.Ender. The request itself is bounded by ctx, even
// where the driver is not.
func (l *lane) end(ctx context.Context, s *server, d stmttimeout.Ender, victim string, force bool) (gone bool, err error) {
	db, err := l.open(s, d)
	if err != nil {
		return false, err
	}
	var answer atomic.Bool // of a question that may be left behind
	ask := func(conn *sql.Conn) error {
		defer conn.Close()
		return conn.Raw(func(c any) error {
			gone, err := d.End(ctx, driver.NewSession(c.(sqldriver.Conn)), victim, force)
			answer.Store(gone)
			if errors.Is(err, stmttimeout.ErrOtherServer) {
				return errors.Join(err, sqldriver.ErrBadConn) // the next connection may lead to the right one
			}
			return err
		})
	}
	err = inTime(ctx, func() error {
		for tries := 1; ; tries++ { // each connection that is there may have been lost meanwhile
			conn, err := db.Conn(ctx)
			if err != nil {
				return err
			}
			if err = ask(conn); err == nil || errors.Is(err, stmttimeout.ErrOtherServer) || tries > laneConns {
				return err
			}
		}
	})
	return err == nil && answer.Load(), err
}

// laneConnector sets the lane's own sessions up.
type laneConnector struct {
	sqldriver.Connector
	dialect stmttimeout.Ender
}

func (c laneConnector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.dialect.Control(ctx, driver.NewSession(conn)); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
