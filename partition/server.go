package partition

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
)

// server is a database server as the pools on it share it.
type server struct {
	connector sqldriver.Connector
	dsn       string // of one opened from a DSN
	opened    bool   // from a DSN: the connector is ours from the start

	dialect atomic.Pointer[stmttimeout.Dialect] // nil until the first connection has told

	poolerMu   sync.Mutex  // held while a pooler before the server is looked at
	ownSession atomic.Bool // a pooler is there, and keeps a session for each connection

	healthOnce sync.Once
	healthDB   *sql.DB

	control lane
}

// dialectOf returns what the server speaks, which the first connection may have to ask.
func (s *server) dialectOf(ctx context.Context, session *driver.Session, log *slog.Logger) (stmttimeout.Dialect, error) {
	if d := s.dialect.Load(); d != nil {
		return *d, nil
	}
	d, known := stmttimeout.ForDriver(s.connector.Driver())
	if d == nil {
		var err error
		if d, err = ask(ctx, session); err != nil && (known || transient(ctx, err)) {
			return nil, fmt.Errorf("partition: cannot find out which server this is: %w", err)
		} else if err != nil {
			d = stmttimeout.ClientOnly()
			if s.dialect.CompareAndSwap(nil, &d) {
				log.Warn("unknown kind of server: statement timeouts are enforced by the client alone",
					"driver", fmt.Sprintf("%T", s.connector.Driver()), "error", s.redacted(err))
			}
			return d, nil
		}
	}
	s.dialect.CompareAndSwap(nil, &d)
	return d, nil
}

// transient reports whether the question failed for a reason that says nothing of the server's kind.
func transient(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, sqldriver.ErrBadConn)
}

func ask(ctx context.Context, session *driver.Session) (stmttimeout.Dialect, error) {
	row, err := session.QueryRow(ctx, "SELECT version()")
	if err != nil {
		return nil, err
	}
	if len(row) != 1 {
		return nil, errors.New("SELECT version() returned nothing")
	}
	text := fmt.Sprint(row[0])
	if d, ok := stmttimeout.FromVersion(text); ok {
		return d, nil
	}
	return nil, fmt.Errorf("SELECT version() returned %.60q", text)
}

// healthTimeout bounds a health check whose context does not, and the dials of connections that belong to no pool.
const healthTimeout = 5 * time.Second

// ping asks the server for a sign of life over a connection of its own, past every gate. It returns on time even if the
// driver does not (lib/pq on a network that hangs).
func (s *server) ping(ctx context.Context) error {
	s.healthOnce.Do(func() {
		s.healthDB = sql.OpenDB(bounded{s.connector})
		s.healthDB.SetMaxOpenConns(1)
		s.healthDB.SetConnMaxIdleTime(time.Minute)
	})
	if s.healthDB == nil {
		return errClosed()
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return inTime(ctx, func() error { return s.healthDB.PingContext(ctx) })
}

// bounded is a connector, without its Close, whose dials end: database/sql dials for those who wait in its own queue under
// a context that does not, and a dial that hangs counts as one of the few connections that there may be.
type bounded struct{ sqldriver.Connector }

func (c bounded) Connect(ctx context.Context) (sqldriver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return c.Connector.Connect(ctx)
}

// inTime runs f, and leaves it behind when ctx ends first. A panic of the driver, which on that goroutine would end the
// program, becomes an error.
func inTime(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- errors.Join(err, panicError(recover())) }()
		err = f()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close closes what belongs to the server and to no pool.
func (s *server) close() (err error) {
	s.healthOnce.Do(func() {})
	if s.healthDB != nil {
		err = s.healthDB.Close()
	}
	err = errors.Join(err, s.control.close())
	if c, ok := s.connector.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}
