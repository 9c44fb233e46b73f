package stmttimeout

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"
)

// postgres is the dialect of PostgreSQL and of the servers that speak its protocol.
type postgres struct {
	warnOnMismatch bool
	pooled         bool
}

var _ Dialect = postgres{}

// PostgresOption changes how [Postgres] sets a session up.
type PostgresOption func(*postgres)

// WarnOnMismatch makes a setting that the server refuses, or says it took and did not, a warning in Applied.Warnings where
// it is an error otherwise. The client guard then holds the limit alone. It is for servers and proxies that only resemble
// PostgreSQL.
func WarnOnMismatch() PostgresOption {
	return func(p *postgres) { p.warnOnMismatch = true }
}

// Postgres returns the dialect of PostgreSQL (9.6 or newer), CockroachDB and YugabyteDB. Two values with the same options
// are equal. It has been run against PostgreSQL; that CockroachDB and Redshift show times as bare milliseconds is allowed
// for, after their sources and manuals.
//
// Times are whole milliseconds, rounded up; one beyond 2147483647 ms (24 days 20 hours), which is the largest that the
// server takes, is sent as that.
//
// Behind a proxy that pools by transaction (PgBouncer's pool_mode=transaction) a session's settings would reach other
// clients: see [TransactionPooling].
func Postgres(opts ...PostgresOption) Dialect {
	var p postgres
	for _, opt := range opts {
		opt(&p)
	}
	return p
}

func (postgres) Name() string { return "postgres" }

// Setup sends one query, which compares, sets and reads back, so that the tighter of two limits costs no second round
// trip.
func (p postgres) Setup(ctx context.Context, s Session, want Settings) (Applied, error) {
	if p.pooled {
		return p.setupPooled(ctx, s, want)
	}
	plan := planPostgres(want)
	ask := func(session string) ([]sqldriver.Value, error) {
		return s.QueryRow(ctx, plan.query(session, want.BackendPID))
	}
	row, err := ask(postgresSession)
	if lacking(err) {
		row, err = ask("NULL") // not a server that tells its sessions' identity
	}
	if err != nil {
		return p.refused(err)
	}
	if row == nil && want.BackendPID > 0 {
		return Applied{}, ErrPooled
	}
	if len(row) != len(plan)+1 {
		return Applied{}, fmt.Errorf("stmttimeout: postgres: the server answered the set-up with %d values, not %d", len(row), len(plan)+1)
	}
	a, err := p.applied(plan, row)
	if err == nil {
		a.Session, _ = textOf(row[len(plan)])
	}
	return a, err
}

// lacking reports whether the server's error is about the statement itself, and so says that it lacks something: SQLSTATE
// class 42, or 0A for what is not supported.
func lacking(err error) bool {
	state, _ := sqlState(err)
	return strings.HasPrefix(state, "42") || strings.HasPrefix(state, "0A")
}

// refused is what becomes of a set-up that the server answered with an error.
func (p postgres) refused(err error) (Applied, error) {
	if !p.warnOnMismatch || !lacking(err) {
		return Applied{}, err
	}
	_, message := sqlState(err)
	return Applied{
		Enforcement: EnforcedByClient,
		Warnings:    []string{"the server refused the session's settings: " + message},
	}, nil
}

func (p postgres) applied(plan postgresPlan, row []sqldriver.Value) (Applied, error) {
	a := Applied{Enforcement: EnforcedByClient}
	var restore []string
	for i, setting := range plan {
		value, ok := textOf(row[i])
		if ok {
			restore = append(restore, setConfig(setting.name, quoteLiteral(value)))
		}
		inForce, mismatch := setting.check(value, ok)
		switch {
		case mismatch == "":
		case p.warnOnMismatch || !ok && setting.optional:
			a.Warnings = append(a.Warnings, mismatch)
		default:
			return Applied{}, errors.New("stmttimeout: postgres: " + mismatch)
		}
		if setting.name == statementTimeout {
			a.StatementTimeout = inForce
			if inForce > 0 && mismatch == "" {
				a.Enforcement = EnforcedBySession
			}
		}
	}
	if plan.sets() && len(restore) > 0 {
		a.Restore = []string{"SELECT " + strings.Join(restore, ", ")}
	}
	return a, nil
}

// Verdict knows the two English texts of SQLSTATE 57014, which the server uses for a timeout and for a cancellation alike.
// A lock timeout (55P03), a session ended for idling in a transaction (25P03) and a transaction that took too long as a
// whole (25P04) are not statement timeouts.
func (postgres) Verdict(err error) Verdict {
	state, message := sqlState(err)
	switch {
	case state != "57014":
		return NotTimeout
	case strings.Contains(message, "statement timeout"):
		return Exceeded
	case strings.Contains(message, "user request"):
		return NotTimeout
	}
	return ExceededOrCanceled
}

// Inspect: statement_timeout holds for every statement.
func (postgres) Inspect(query string) Traits {
	if mentionsSetting(query) || anyCommand(query, touchesPostgres) {
		return ServerEnforced | TouchesSettings
	}
	return ServerEnforced
}

// maxPostgresMillis is the largest value of the server's time settings, which are 32-bit integers.
const maxPostgresMillis = 1<<31 - 1

// postgresMillis is d as a session is asked for it.
func postgresMillis(d time.Duration) int64 {
	return ceilUnits(d, time.Millisecond, maxPostgresMillis)
}
