package stmttimeout

import (
	"context"
	"strings"
	"time"
)

// mariadb is the dialect of MariaDB.
type mariadb struct{}

var _ Dialect = mariadb{}

// MariaDB returns the dialect of MariaDB 10.3 or newer.
//
// The server limits every statement. max_statement_time is seconds with six decimals, rounded up to the microsecond.
// LockTimeout and IdleInTransactionTimeout are whole seconds, rounded up. Each is at most a year.
func MariaDB() Dialect { return mariadb{} }

func (mariadb) Name() string { return "mariadb" }

// Setup takes one round trip: a compound statement sets and then reads back. Its answer is a result set with a second,
// empty result behind it, which go-sql-driver/mysql reads with its default settings, in every sql_mode.
func (m mariadb) Setup(ctx context.Context, s Session, want Settings) (Applied, error) {
	plan := planMariaDB(want)
	row, err := plan.read(ctx, s, func(session string) string {
		return compound(append(plan.set(), plan.readBack(session)))
	})
	if err != nil {
		return Applied{}, err
	}
	a, err := plan.applied(m.Name(), EnforcedBySession, row)
	if len(a.Restore) > 1 {
		a.Restore = []string{compound(a.Restore)}
	}
	return a, err
}

// compound makes one statement of several.
func compound(statements []string) string {
	if len(statements) == 1 {
		return statements[0]
	}
	return "BEGIN NOT ATOMIC " + strings.Join(statements, "; ") + "; END"
}

func planMariaDB(want Settings) mysqlPlan {
	plan := mysqlPlan{{
		name: "max_statement_time", unit: time.Microsecond,
		asked: mysqlUnits(want.StatementTimeout, time.Microsecond, oneYear*1e6), zeroIsOff: true,
	}}
	plan = append(plan, lockTimeouts(want.LockTimeout)...)
	if want.IdleInTransactionTimeout > 0 {
		plan = append(plan, mysqlVariable{
			name: "idle_transaction_timeout", unit: time.Second,
			asked: mysqlUnits(want.IdleInTransactionTimeout, time.Second, oneYear), zeroIsOff: true,
		})
	}
	if want.ReadOnly {
		plan = append(plan, mysqlVariable{name: "transaction_read_only", readOnly: true, own: mariadbReadOnly})
	}
	return plan
}

// mariadbReadOnly reads whether transactions are read-only. MariaDB 11.1 renamed the variable.
const mariadbReadOnly = "(SELECT MAX(VARIABLE_VALUE) FROM information_schema.SESSION_VARIABLES" +
	" WHERE VARIABLE_NAME IN ('TX_READ_ONLY', 'TRANSACTION_READ_ONLY'))"

func (mariadb) Verdict(err error) Verdict { return mysqlVerdict(err) }

// Inspect: max_statement_time holds for every statement, a CALL included.
func (mariadb) Inspect(query string) Traits { return ServerEnforced | mysqlTouches(query) }
