package main

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
)

// session is one connection of a pool, and what its server says of it.
type session struct {
	pool *partition.Pool
	conn *sql.Conn

	kind    kind
	version string
	server  string        // the same for all sessions on one server
	limit   time.Duration // the statement timeout as read back; 0: none
	pooler  string        // in between: "yes", "no", "unknown"; "-" without a server
}

// kind is what to ask one kind of server.
type kind struct {
	name     string // as people write it; "" if it is not known
	identity string // SQL
	limit    string // SQL: the session's statement timeout, as a number
	unit     time.Duration
	capacity func(context.Context, *sql.Conn) (capacity, error)
	ceilings func(context.Context, *sql.Conn) ([]ceiling, error)
	role     func(context.Context, *sql.Conn) string
}

var kinds = map[string]kind{
	"postgres": {
		name:     "PostgreSQL",
		identity: "SELECT current_setting('port') || ' ' || extract(epoch FROM pg_postmaster_start_time())",
		limit:    "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'",
		unit:     time.Millisecond,
		capacity: postgresCapacity, ceilings: postgresCeilings, role: postgresRole,
	},
	"mariadb": {
		name:     "MariaDB",
		identity: "SELECT concat(@@hostname, ' ', @@port, ' ', @@datadir)",
		limit:    "SELECT @@max_statement_time",
		unit:     time.Second,
		capacity: mariadbCapacity, ceilings: mysqlCeilings, role: mariadbRole,
	},
	"mysql": {
		name:     "MySQL",
		identity: "SELECT @@server_uuid",
		limit:    "SELECT @@max_execution_time",
		unit:     time.Millisecond,
		capacity: mysqlCapacity, ceilings: mysqlCeilings, role: mysqlRole,
	},
}

// identify asks the server what it is, and which statement timeout it has for
// this session.
func (s *session) identify(ctx context.Context, driver string) error {
	s.pooler = "unknown"
	if driver == "sqlite" {
		s.pooler = "-"
		return nil
	}
	var version string
	if err := s.conn.QueryRowContext(ctx, "SELECT version()").Scan(&version); err != nil {
		return err
	}
	dialect, ok := stmttimeout.FromVersion(version)
	if !ok {
		return fmt.Errorf("which kind of server is %.60q?", version)
	}
	s.kind, s.version = kinds[dialect.Name()], versionNumber(version)
	if err := s.conn.QueryRowContext(ctx, s.kind.identity).Scan(&s.server); err != nil {
		return err
	}
	return s.readBack(ctx)
}

func (s *session) readBack(ctx context.Context) error {
	var setting string
	if err := s.conn.QueryRowContext(ctx, s.kind.limit).Scan(&setting); err != nil {
		return fmt.Errorf("cannot read the statement timeout back: %w", err)
	}
	number, err := strconv.ParseFloat(setting, 64)
	if err != nil {
		return fmt.Errorf("the server's statement timeout is %.60q", setting)
	}
	s.limit = time.Duration(number * float64(s.kind.unit))
	s.pooler, err = poolerBetween(ctx, s.conn)
	return err
}

// poolerBetween compares the backend that answered the dial with the one that
// answers queries: a pooler answers the dial itself, with a number of its own.
// Among the drivers pgx alone tells.
func poolerBetween(ctx context.Context, conn *sql.Conn) (string, error) {
	var dialed uint32
	err := partition.Raw(conn, func(driverConn any) error {
		if c, ok := driverConn.(*stdlib.Conn); ok {
			dialed = c.Conn().PgConn().PID()
		}
		return nil
	})
	if err != nil || dialed == 0 {
		return "unknown", err
	}
	var asked uint32
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&asked); err != nil {
		return "unknown", err
	}
	if asked != dialed {
		return "yes", nil
	}
	return "no", nil
}

// versionNumber is 15.18 of "PostgreSQL 15.18 (Debian …)", 10.11.6 of
// "10.11.6-MariaDB-…".
func versionNumber(text string) string {
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '-' || r == ',' })
	for _, field := range fields {
		if strings.Trim(field, "0123456789.") == "" {
			return field
		}
	}
	return ""
}

// own says whether the pool has a server of its own in the configuration.
func (s *session) own() bool { return s.pool.Config().DSN != "" }

// judgeTimeout compares what was asked for with what is in force.
func (f *findings) judgeTimeout(s *session) {
	name, asked := s.pool.Name(), s.pool.Config().StatementTimeout
	enforcement := s.pool.Stats().Enforcement
	switch {
	case s.kind.name == "":
		// The client alone holds the limit, and there is nothing to read back.
	case asked <= 0 && s.limit > 0:
		f.note("pool %q asks for no statement timeout of its own, and that of the server, the role or the DSN holds: %s",
			name, short(s.limit))
	case asked <= 0:
	case s.limit == 0:
		f.broken("pool %q: the statement timeout of %s is not in force: the server has none for this session", name, short(asked))
	case s.limit > asked+s.kind.unit:
		f.broken("pool %q: the statement timeout of %s is not in force: the server has %s for this session",
			name, short(asked), short(s.limit))
	case enforcement == string(stmttimeout.EnforcedByClient):
		f.broken("pool %q: the statement timeout of %s is held by the client alone", name, short(asked))
	case s.limit < asked:
		f.note("pool %q: the server, the role or the DSN sets a statement timeout of %s, which is tighter than %s and holds",
			name, short(s.limit), short(asked))
	}
	if s.pooler == "yes" {
		f.note("pool %q: a pooler stands in between. If it pools by transaction, a session's settings reach other clients, "+
			"and what was read back is not certain to hold", name)
	}
}
