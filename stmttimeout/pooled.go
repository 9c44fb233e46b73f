package stmttimeout

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// TransactionPooling is for a connection that leads through a pooler which lends a session of the server for one
// transaction at a time (PgBouncer's pool_mode=transaction, RDS Proxy): what a session is set to would reach the
// pooler's other clients there.
//
// No session setting and no startup parameter is sent. What a session of this role begins with is read once per
// connection; where that limits statements as tightly as asked (ALTER ROLE … SET statement_timeout), the server enforces
// the limit on all of them ([EnforcedByRole]). Otherwise transactions that begin with BeginTx are limited on the server by
// SET LOCAL, for one round trip more each, and what runs outside of one by the client guard, exactly at the limit
// ([EnforcedByTransaction]). A transaction may still begin with SET TRANSACTION of its own.
//
// IdleInTransactionTimeout, LockTimeout and ReadOnly hold in those transactions; the last two do not hold outside, which
// is a warning unless the role has them. Workload is not shown in application_name. It works without a pooler, too.
func TransactionPooling() PostgresOption {
	return func(p *postgres) { p.pooled = true }
}

// pooledSetting is something that transactions are set to, unless the role has it.
type pooledSetting struct {
	name  string
	begin string // the statement that sets it for one transaction; "" only reads
	has   func(own string) (bool, error)
	field string // of Settings, where it matters outside transactions as well
}

func planPooled(want Settings) []pooledSetting {
	plan := []pooledSetting{pooledLimit(statementTimeout, want.StatementTimeout, "")}
	if want.IdleInTransactionTimeout > 0 {
		plan = append(plan, pooledLimit("idle_in_transaction_session_timeout", want.IdleInTransactionTimeout, ""))
	}
	if want.LockTimeout > 0 {
		plan = append(plan, pooledLimit("lock_timeout", want.LockTimeout, "LockTimeout"))
	}
	if want.ReadOnly {
		plan = append(plan, pooledSetting{
			name: "default_transaction_read_only", begin: "SET TRANSACTION READ ONLY", field: "ReadOnly",
			has: func(own string) (bool, error) { return own == "on", nil },
		})
	}
	return plan
}

// pooledLimit uses SET and not set_config(): a SELECT takes a snapshot, after which the server refuses the user's own SET
// TRANSACTION.
func pooledLimit(name string, d time.Duration, field string) pooledSetting {
	s := pooledSetting{name: name, field: field}
	limit := postgresMillis(d)
	if d > 0 {
		s.begin = "SET LOCAL " + name + " = " + strconv.FormatInt(limit, 10)
	}
	s.has = func(own string) (bool, error) {
		inForce, err := parsePostgresDuration(own)
		return inForce > 0 && (d <= 0 || inForce <= time.Duration(limit)*time.Millisecond), err
	}
	return s
}

// pooledQuery reads what sessions of this role begin with. What they are set to now may be some other client's doing.
func pooledQuery(plan []pooledSetting) string {
	columns, names := make([]string, len(plan)), make([]string, len(plan))
	for i, s := range plan {
		names[i] = quoteLiteral(s.name)
		columns[i] = "max(CASE WHEN name = " + names[i] + " THEN reset_val END)"
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM pg_settings WHERE name IN (" + strings.Join(names, ", ") + ")"
}

func (p postgres) setupPooled(ctx context.Context, s Session, want Settings) (Applied, error) {
	plan := planPooled(want)
	row, err := s.QueryRow(ctx, pooledQuery(plan))
	if err != nil {
		return p.refused(err)
	}
	if len(row) != len(plan) {
		return Applied{}, fmt.Errorf("stmttimeout: postgres: the server answered the set-up with %d values, not %d", len(row), len(plan))
	}
	a := Applied{Enforcement: EnforcedByClient}
	var begin []string
	for i, setting := range plan {
		own, ok := textOf(row[i])
		switch has, err := setting.has(own); {
		case !ok:
			a.Warnings = append(a.Warnings, "the server has no "+setting.name)
		case err != nil:
			return Applied{}, fmt.Errorf("stmttimeout: postgres: %s of the role: %w", setting.name, err)
		case has:
			a.roleHas(setting, own)
		case setting.begin != "":
			begin = append(begin, setting.begin)
			a.transactionHas(setting, want)
		}
	}
	if len(begin) > 0 {
		a.Transaction = []string{strings.Join(begin, "; ")}
	}
	return a, nil
}

func (a *Applied) roleHas(s pooledSetting, own string) {
	if s.name == statementTimeout {
		a.Enforcement = EnforcedByRole
		a.StatementTimeout, _ = parsePostgresDuration(own) // it was read before
	}
}

func (a *Applied) transactionHas(s pooledSetting, want Settings) {
	if s.name == statementTimeout {
		a.Enforcement = EnforcedByTransaction
		a.StatementTimeout = time.Duration(postgresMillis(want.StatementTimeout)) * time.Millisecond
	}
	if s.field != "" {
		a.Warnings = append(a.Warnings, s.field+" holds within transactions alone: set "+s.name+" for the role (ALTER ROLE … SET)")
	}
}

// ErrPooled is returned by the Setup of [Postgres] where another backend answers than the one that the connection was
// given (Settings.BackendPID), so that a pooler or proxy stands between. Nothing was set. Whether that pooler keeps a
// session for each connection, so that the set-up may be repeated without BackendPID, [SharesSessions] finds out.
var ErrPooled = errors.New("stmttimeout: postgres: a pooler stands between the connection and the server")

// SharesSessions reports whether the sessions behind two open connections were seen to change or to be the same: a pooler
// lends them by the transaction. False proves nothing: while other clients use the pooler it may happen to look like a
// session each. It asks for pg_backend_pid a dozen times, and changes nothing. After an error both connections are in an
// unknown state.
func SharesSessions(ctx context.Context, a, b Session) (bool, error) {
	sessions, last := [...]Session{a, b}, [2]int64{}
	// Asked in this order, neither a pooler that lends the session used last nor one that lends them in turn gives each
	// connection the same one every time.
	for _, i := range [...]int{0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0} {
		pid, err := backendPID(ctx, sessions[i])
		if err != nil || pid == 0 {
			return false, err
		}
		if last[i] != 0 && last[i] != pid || last[1-i] == pid {
			return true, nil
		}
		last[i] = pid
	}
	return false, nil
}

func backendPID(ctx context.Context, s Session) (int64, error) {
	row, err := s.QueryRow(ctx, "SELECT pg_backend_pid()")
	if err != nil || len(row) != 1 {
		return 0, err
	}
	return pidOf(row[0]), nil
}

// pidOf is 0 for what is no process id. CockroachDB has answered -1.
func pidOf(v sqldriver.Value) int64 {
	if n, ok := v.(int64); ok {
		return max(n, 0)
	}
	text, _ := textOf(v)
	n, _ := strconv.ParseInt(text, 10, 64) // 0 for anything else
	return max(n, 0)
}
