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

// mysqlPlan is what one set-up asks of a MySQL or MariaDB session, in the order of the columns that are read back. The
// statement timeout comes first and is always there, if only to be read.
type mysqlPlan []mysqlVariable

type mysqlVariable struct {
	name      string
	unit      time.Duration
	asked     time.Duration // rounded up to what the server can hold; 0 only reads
	zeroIsOff bool          // 0 means "no limit" and is looser than anything; otherwise it is the tightest
	readOnly  bool          // not a time: SET SESSION TRANSACTION READ ONLY
	own       string        // SQL that reads a readOnly variable
}

// mysqlUnits is d rounded up to the unit and cut to the server's largest value; 0 if nothing is asked.
func mysqlUnits(d, unit time.Duration, limit int64) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(ceilUnits(d, unit, limit)) * unit
}

// oneYear is in seconds: the largest value of MariaDB's time settings, and of lock_wait_timeout on both servers.
const oneYear = 365 * 24 * 60 * 60

// lockTimeouts are the waits for row locks and for metadata locks.
func lockTimeouts(d time.Duration) []mysqlVariable {
	if d <= 0 {
		return nil
	}
	asked := mysqlUnits(d, time.Second, oneYear)
	return []mysqlVariable{
		{name: "innodb_lock_wait_timeout", unit: time.Second, asked: asked},
		{name: "lock_wait_timeout", unit: time.Second, asked: asked},
	}
}

// set returns the statements that put the plan into force, none if it only reads.
func (plan mysqlPlan) set() []string {
	return plan.statements(mysqlVariable.tighter)
}

// statements sets each variable that is asked for to what value says.
func (plan mysqlPlan) statements(value func(mysqlVariable) string) []string {
	var assign, statements []string
	for _, v := range plan {
		switch {
		case v.readOnly:
			statements = append(statements, "SET SESSION TRANSACTION READ ONLY")
		case value(v) != "":
			assign = append(assign, v.variable()+" = "+value(v))
		}
	}
	if len(assign) > 0 {
		statements = append(statements, "SET "+strings.Join(assign, ", "))
	}
	return statements
}

func (v mysqlVariable) variable() string { return "@@SESSION." + v.name }

// tighter is the SQL of the smaller of what is asked and what the session has. A comparison of a signed with an unsigned
// number is a decimal to MySQL, which an integer variable does not take, hence the cast.
func (v mysqlVariable) tighter() string {
	if v.asked == 0 {
		return ""
	}
	sql := fmt.Sprintf("LEAST(%s, %s)", v.variable(), v.literal(v.asked))
	if v.zeroIsOff {
		sql = fmt.Sprintf("IF(%[1]s > 0 AND %[1]s < %[2]s, %[1]s, %[2]s)", v.variable(), v.literal(v.asked))
	}
	if v.fractional() {
		return sql
	}
	return "CAST(" + sql + " AS UNSIGNED)"
}

// fractional: MariaDB's max_statement_time is seconds with six decimals, so that its unit here is the microsecond.
func (v mysqlVariable) fractional() bool { return v.unit == time.Microsecond }

// literal writes d as the server's number.
func (v mysqlVariable) literal(d time.Duration) string {
	if !v.fractional() {
		return strconv.FormatInt(int64(d/v.unit), 10)
	}
	return fmt.Sprintf("%d.%06d", d/time.Second, d%time.Second/time.Microsecond)
}

// readBack is the query that reads every variable of the plan, and then the session's identity or, for a server that
// cannot tell, NULL.
func (plan mysqlPlan) readBack(session string) string {
	columns := make([]string, len(plan), len(plan)+1)
	for i, v := range plan {
		columns[i] = v.variable()
		if v.readOnly {
			columns[i] = v.own
		}
	}
	return "SELECT " + strings.Join(append(columns, session), ", ")
}

// read runs query, the one without the session's identity if the server does not understand the other.
func (plan mysqlPlan) read(ctx context.Context, s Session, query func(session string) string) ([]sqldriver.Value, error) {
	row, err := s.QueryRow(ctx, query(mysqlSession))
	if err != nil && anyNumber(err, func(int64) bool { return true }) {
		return s.QueryRow(ctx, query("NULL"))
	}
	return row, err
}

// applied checks the row that was read back against the plan.
func (plan mysqlPlan) applied(dialect string, enforcement Enforcement, row []sqldriver.Value) (Applied, error) {
	if len(row) != len(plan)+1 {
		return Applied{}, fmt.Errorf("stmttimeout: %s: the server answered the set-up with %d values, not %d", dialect, len(row), len(plan)+1)
	}
	inForce := make(map[string]time.Duration, len(plan))
	for i, v := range plan {
		d, err := v.check(row[i])
		if err != nil {
			return Applied{}, fmt.Errorf("stmttimeout: %s: %s: %w", dialect, v.name, err)
		}
		inForce[v.name] = d
	}
	a := Applied{Enforcement: EnforcedByClient, StatementTimeout: inForce[plan[0].name]}
	a.Session, _ = textOf(row[len(plan)])
	if a.StatementTimeout > 0 {
		a.Enforcement = enforcement
	}
	if len(plan.set()) > 0 {
		a.Restore = plan.statements(func(v mysqlVariable) string { return v.literal(inForce[v.name]) })
	}
	return a, nil
}

// check returns what was read back, or what is wrong with it.
func (v mysqlVariable) check(value sqldriver.Value) (time.Duration, error) {
	if v.readOnly {
		return 0, checkReadOnly(value)
	}
	unit := v.unit
	if v.fractional() {
		unit = time.Second
	}
	d, err := scaled(value, unit)
	switch {
	case err != nil:
		return 0, fmt.Errorf("as read back: %w", err)
	case v.asked > 0 && (d > v.asked || d == 0 && v.zeroIsOff):
		return 0, fmt.Errorf("asked for at most %v, the server has %v in force", v.asked, d)
	}
	return d, nil
}

// checkReadOnly accepts the boolean as a number or, from the variables' own table, as ON.
func checkReadOnly(value sqldriver.Value) error {
	if text, ok := textOf(value); ok && text == "ON" {
		return nil
	}
	if n, err := number(value); err != nil || n != 1 {
		return errors.New("asked for a read-only session, the server has a writable one")
	}
	return nil
}
