package main

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
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
	backend int64         // what serves the session there
	limit   time.Duration // the statement timeout as read back; 0: none
	pooler  string        // in between: "yes", "no", "unknown"; "-" without a server
}

// kind is what to ask one kind of server.
type kind struct {
	name     string // as people write it; "" if it is not known
	identity string // SQL: of the server, and of the backend that answers
	limit    string // SQL: the session's statement timeout, as a number
	unit     time.Duration
	capacity func(context.Context, *sql.Conn) (capacity, error)
	ceilings func(context.Context, *sql.Conn) ([]ceiling, error)
	role     func(context.Context, *sql.Conn) string
}

var kinds = map[string]kind{
	"postgres": {
		name:     "PostgreSQL",
		identity: "SELECT current_setting('port') || ' ' || extract(epoch FROM pg_postmaster_start_time()), pg_backend_pid()",
		limit:    "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'",
		unit:     time.Millisecond,
		capacity: postgresCapacity, ceilings: postgresCeilings, role: postgresRole,
	},
	"mariadb": {
		name:     "MariaDB",
		identity: "SELECT concat(@@hostname, ' ', @@port, ' ', @@datadir), CONNECTION_ID()",
		limit:    "SELECT @@max_statement_time",
		unit:     time.Second,
		capacity: mariadbCapacity, ceilings: mysqlCeilings, role: mariadbRole,
	},
	"mysql": {
		name:     "MySQL",
		identity: "SELECT @@server_uuid, CONNECTION_ID()",
		limit:    "SELECT @@max_execution_time",
		unit:     time.Millisecond,
		capacity: mysqlCapacity, ceilings: mysqlCeilings, role: mysqlRole,
	},
}

// identify asks the server what it is, and which statement timeout it has for
// this session.
func (s *session) identify(ctx context.Context, driver string) error {
	if s.pooler = "unknown"; driver == "sqlite" {
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
	if err := s.conn.QueryRowContext(ctx, s.kind.identity).Scan(&s.server, &s.backend); err != nil {
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
	s.limit = time.Duration(math.Round(number*float64(s.kind.unit/time.Microsecond))) * time.Microsecond
	s.pooler, err = poolerBetween(s.conn, s.backend)
	return err
}

// poolerBetween compares the backend that answered the dial with the one that
// answers queries: a pooler answers the dial itself, with a number of its own.
// The drivers of PostgreSQL alone tell.
func poolerBetween(conn *sql.Conn, backend int64) (between string, err error) {
	between = "unknown"
	err = partition.Raw(conn, func(driverConn any) error {
		switch driver.NewSession(driverConn.(sqldriver.Conn)).BackendPID() {
		case 0:
		case backend:
			between = "no"
		default:
			between = "yes"
		}
		return nil
	})
	return between, err
}

// shareBackends finds what no driver has to tell: two of our connections that one
// backend serves.
func (d *dbServer) shareBackends() {
	seen := map[int64]bool{}
	for _, s := range d.sessions {
		if seen[s.backend] {
			for _, s := range d.sessions {
				s.pooler = "yes"
			}
			return
		}
		seen[s.backend] = true
	}
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
	case s.limit > asked+time.Millisecond: // to which it is rounded up
		f.broken("pool %q: the statement timeout of %s is not in force: the server has %s for this session",
			name, short(asked), short(s.limit))
	case enforcement == string(stmttimeout.EnforcedByClient):
		f.broken("pool %q: the statement timeout of %s is held by the client alone", name, short(asked))
	case s.limit < asked:
		f.note("pool %q: the server, the role or the DSN sets a statement timeout of %s, which is tighter than %s and holds",
			name, short(s.limit), short(asked))
	}
}
