package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
)

// errSharesSessions is the error of a dial through a pooler for which the dialect is the wrong one.
var errSharesSessions = fmt.Errorf("partition: the pooler before this server lends a session for one transaction at a time, so that "+
	"session settings would reach its other clients: open with partition.WithDialect(stmttimeout.Postgres("+
	"stmttimeout.TransactionPooling())), or \"pooler\": \"transaction\" in the configuration: %w", stmttimeout.ErrPooled)

// setUp sets a session up, unless a pooler would hand it to somebody else afterwards.
func (p *Pool) setUp(ctx context.Context, dialect stmttimeout.Dialect, session *driver.Session) (stmttimeout.Applied, error) {
	want := p.settings()
	if !p.server.ownSession.Load() {
		want.BackendPID = session.BackendPID()
	}
	applied, err := dialect.Setup(ctx, session, want)
	if !errors.Is(err, stmttimeout.ErrPooled) {
		return applied, err
	}
	if err := p.server.lookAtPooler(ctx, session); err != nil {
		return stmttimeout.Applied{}, err
	}
	want.BackendPID = 0
	return dialect.Setup(ctx, session, want)
}

// maxPoolerLook bounds the wait for a second session of a pooler. One that keeps a session for each connection may have
// no other left.
const maxPoolerLook = time.Second

// lookAtPooler finds out, once, whether the pooler before the server lends its sessions by the transaction. It takes one
// connection more for a moment.
func (s *server) lookAtPooler(ctx context.Context, session *driver.Session) error {
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
	s.ownSession.Store(true)
	return nil
}

func (s *server) sharesSessions(ctx context.Context, session *driver.Session) (bool, error) {
	look, cancel := context.WithTimeout(ctx, maxPoolerLook)
	defer cancel()
	conn, err := s.connector.Connect(look)
	if err != nil {
		return false, ctx.Err() // no second connection: nothing was seen
	}
	defer conn.Close()
	second := driver.NewSession(conn)
	if err := second.Ping(look); err != nil {
		return false, ctx.Err()
	}
	return stmttimeout.SharesSessions(ctx, session, second)
}
