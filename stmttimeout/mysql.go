package stmttimeout

import (
	"context"
	"time"
)

// mysql is the dialect of MySQL, and of servers that took over its max_execution_time.
type mysql struct{}

var _ Dialect = mysql{}

// MySQL returns the dialect of MySQL 5.7.20 or newer.
//
// The server limits read-only SELECT alone; the client guard limits everything else. max_execution_time is whole
// milliseconds, rounded up, at most 4294967295. LockTimeout is whole seconds, rounded up. The server has nothing for
// IdleInTransactionTimeout.
//
// This dialect follows MySQL's manual and the driver's source. Unlike those of PostgreSQL and MariaDB it has not been run
// against a server: the set-up statements, error 3024 and the effect of a hint are unverified.
func MySQL() Dialect { return mysql{} }

func (mysql) Name() string { return "mysql" }

// Setup takes two round trips, one to set and one to read back: the driver sends one statement at a time, and MySQL has no
// compound statement outside stored programs.
func (m mysql) Setup(ctx context.Context, s Session, want Settings) (Applied, error) {
	plan := planMySQL(want)
	for _, statement := range plan.set() {
		if err := s.Exec(ctx, statement); err != nil {
			return Applied{}, err
		}
	}
	row, err := plan.read(ctx, s, plan.readBack)
	if err != nil {
		return Applied{}, err
	}
	a, err := plan.applied(m.Name(), EnforcedForSelects, row)
	if err == nil && want.IdleInTransactionTimeout > 0 {
		a.Warnings = append(a.Warnings, "IdleInTransactionTimeout is not set on the server: MySQL has no setting for it")
	}
	return a, err
}

func planMySQL(want Settings) mysqlPlan {
	plan := mysqlPlan{{
		name: "max_execution_time", unit: time.Millisecond,
		asked: mysqlUnits(want.StatementTimeout, time.Millisecond, 1<<32-1), zeroIsOff: true,
	}}
	plan = append(plan, lockTimeouts(want.LockTimeout)...)
	if want.ReadOnly {
		plan = append(plan, mysqlVariable{name: "transaction_read_only", readOnly: true, own: "@@SESSION.transaction_read_only"})
	}
	return plan
}

func (mysql) Verdict(err error) Verdict { return mysqlVerdict(err) }

// Inspect recognises a plain SELECT as limited by the server. Doubt counts as not limited: SELECT ... INTO or FOR UPDATE,
// a parenthesised SELECT, WITH, an executable comment, several statements in one text, a MAX_EXECUTION_TIME hint.
func (mysql) Inspect(query string) Traits {
	t := mysqlTouches(query)
	if plainSelect(query) {
		t |= ServerEnforced
	}
	return t
}

// The server's error numbers. MariaDB's 3024 and MySQL's 1969 do not exist or mean the same, so that both dialects take
// both: a proxy may speak for either.
const (
	mariadbStatementTimeout = 1969
	mysqlQueryTimeout       = 3024
	queryInterrupted        = 1317 // KILL QUERY; which limit has passed says whether it was for a timeout
)

func mysqlVerdict(err error) Verdict {
	if anyNumber(err, func(n int64) bool { return n == mariadbStatementTimeout || n == mysqlQueryTimeout }) {
		return Exceeded
	}
	if anyNumber(err, func(n int64) bool { return n == queryInterrupted }) {
		return ExceededOrCanceled
	}
	return NotTimeout
}
