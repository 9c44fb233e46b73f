package partition

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
)

// errSharesSessions is the error of a dial through a pooler for which the dialect is the wrong one.
var errSharesSessions = fmt.Errorf("partition: the pooler before this server lends a session for one transaction at a time, so that "+
	"session settings would reach its other clients: open with partition.WithDialect(stmttimeout.Postgres("+
	"stmttimeout.TransactionPooling())), or \"pooler\": \"transaction\" in the configuration: %w", stmttimeout.ErrPooled)

// setUp sets a session up, unless a pooler would hand it to somebody else afterwards.
func (p *Pool) setUp(ctx context.Context, dialect stmttimeout.Dialect, session *driver.Session, want stmttimeout.Settings) (stmttimeout.Applied, error) {
	if !p.server.ownSession.Load() && p.registry.mode == Enforce { // else nothing is set that could reach others
		want.BackendPID = session.BackendPID()
	}
	applied, err := dialect.Setup(ctx, session, want)
	if !errors.Is(err, stmttimeout.ErrPooled) {
		return applied, err
	}
	if err := p.server.lookAtPooler(ctx, session, p.registry.logger); err != nil {
		return stmttimeout.Applied{}, err
	}
	want.BackendPID = 0
	return dialect.Setup(ctx, session, want)
}

// maxPoolerLook is how long a second session of a pooler is waited for. One that keeps a session for each connection may
// have no other left.
const maxPoolerLook = time.Second

// lookAtPooler finds out, once, whether the pooler before the server lends its sessions by the transaction. It takes one
// connection more for a moment.
func (s *server) lookAtPooler(ctx context.Context, session *driver.Session, log *slog.Logger) error {
	s.poolerMu.Lock()
	defer s.poolerMu.Unlock()
	if s.ownSession.Load() {
		return nil
	}
	shares, err := s.sharesSessions(ctx, session)
	switch {
	case err != nil:
		return err
	case shares:
		return errSharesSessions
	}
	log.Info("a pooler stands before the server; each connection is taken to have a session of its own: no other was seen")
	s.ownSession.Store(true)
	return nil
}

func (s *server) sharesSessions(ctx context.Context, session *driver.Session) (bool, error) {
	ctxOther, cancel := context.WithCancel(ctx)
	defer cancel()
	others := s.another(ctxOther)
	other := await(others, maxPoolerLook)
	if other == nil {
		// A pooler of transactions that has none to lend lets the two wait in turn. One of sessions answers the first.
		if err := session.Ping(ctx); err != nil {
			return false, err
		}
		if other = await(others, maxPoolerLook/10); other == nil {
			return false, nil
		}
	}
	defer other.Close()
	return stmttimeout.SharesSessions(ctx, session, driver.NewSession(other))
}

// another makes one more connection, and passes it on when the server has answered to it. A driver that does not let go
// when ctx ends (lib/pq, of a pooler that has it wait) is left behind.
func (s *server) another(ctx context.Context) <-chan sqldriver.Conn {
	answered := make(chan sqldriver.Conn)
	go func() {
		defer close(answered)
		defer func() { recover() }() // a driver that panics here would end the program
		conn, err := s.connector.Connect(ctx)
		if err != nil {
			return
		}
		if driver.NewSession(conn).Ping(ctx) == nil {
			select {
			case answered <- conn:
				return
			case <-ctx.Done():
			}
		}
		conn.Close()
	}()
	return answered
}

// await returns nil where nothing comes within d, or nothing will.
func await(conns <-chan sqldriver.Conn, d time.Duration) sqldriver.Conn {
	select {
	case conn := <-conns:
		return conn
	case <-time.After(d):
		return nil
	}
}
