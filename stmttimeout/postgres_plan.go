package stmttimeout

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const statementTimeout = "statement_timeout"

// postgresPlan is what one set-up asks for, in the order of the columns of its query. The statement timeout comes first
// and is always there, if only to be read.
type postgresPlan []postgresSetting

type postgresSetting struct {
	name     string
	own      string        // SQL: what the session has now; NULL where the server does not know the setting
	value    string        // SQL: what to set it to, from own; "" only reads
	limit    time.Duration // at most this is accepted as read back, and not 0; 0 accepts every time
	exactly  string        // accepted as read back; "" where limit decides, or nothing
	optional bool          // a server without it is a warning
}

func planPostgres(want Settings) postgresPlan {
	plan := postgresPlan{limitSetting(statementTimeout, want.StatementTimeout)}
	for _, s := range []postgresSetting{
		optional(limitSetting("idle_in_transaction_session_timeout", want.IdleInTransactionTimeout)),
		optional(limitSetting("lock_timeout", want.LockTimeout)),
		readOnlySetting(want.ReadOnly),
		nameSetting(want.ApplicationName, want.Workload),
	} {
		if s.value != "" {
			plan = append(plan, s)
		}
	}
	return plan
}

// limitSetting asks for the tighter of d and what the session has. The comparison is one of intervals, since the session
// shows its time with whatever unit divides it.
func limitSetting(name string, d time.Duration) postgresSetting {
	s := postgresSetting{name: name, own: "current_setting('" + name + "')"}
	if d <= 0 {
		return s
	}
	millis := postgresMillis(d)
	s.limit = time.Duration(millis) * time.Millisecond
	own := fmt.Sprintf("CAST(CASE WHEN own.%[1]s ~ '[a-z]' THEN own.%[1]s ELSE own.%[1]s || ' ms' END AS interval)", name)
	s.value = fmt.Sprintf("CASE WHEN %[1]s > interval '0' AND %[1]s < interval '%[2]d ms' THEN own.%[3]s ELSE '%[2]d' END",
		own, millis, name)
	return s
}

// optional makes a setting that the server does not know a NULL, and a warning, instead of an error.
func optional(s postgresSetting) postgresSetting {
	s.own = "current_setting('" + s.name + "', true)"
	s.optional = true
	return s
}

func readOnlySetting(on bool) postgresSetting {
	s := postgresSetting{name: "default_transaction_read_only", own: "current_setting('default_transaction_read_only')"}
	if on {
		s.value, s.exactly = "'on'", "on"
	}
	return s
}

// maxApplicationName is what the server keeps of an application_name, in bytes. It shows non-ASCII bytes as something
// ASCII, so that bytes and characters are the same.
const maxApplicationName = 63

// nameSetting appends the workload to the session's own application_name. A name that ends with it already stays: a proxy
// may hand out a session that was set up before.
func nameSetting(fallback, workload string) postgresSetting {
	s := postgresSetting{name: "application_name", own: "current_setting('application_name')"}
	if workload == "" {
		return s
	}
	if fallback == "" {
		fallback = "sqlbulkhead"
	}
	workload = printableASCII(workload)
	suffix := "/" + workload[:min(len(workload), maxApplicationName-1)]
	s.value = fmt.Sprintf("CASE WHEN right(own.application_name, %[1]d) = %[2]s THEN own.application_name"+
		" ELSE left(CASE WHEN own.application_name = '' THEN %[3]s ELSE own.application_name END, %[4]d) || %[2]s END",
		len(suffix), quoteLiteral(suffix), quoteLiteral(printableASCII(fallback)), maxApplicationName-len(suffix))
	return s
}

func printableASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// query sets and reads back in one row, and ends it with the session's identity. A setting's own value is read below,
// before it is set above. Where another backend than pid answers there is no row, and nothing is set; 0 is any.
func (plan postgresPlan) query(session string, pid int64) string {
	columns, own := make([]string, len(plan)), make([]string, len(plan))
	for i, s := range plan {
		columns[i] = s.column()
		own[i] = s.own + " AS " + s.name
	}
	query := "SELECT " + strings.Join(append(columns, session), ", ") + " FROM (SELECT " + strings.Join(own, ", ") + ") AS own"
	if pid > 0 {
		query += " WHERE pg_backend_pid() = " + strconv.FormatInt(pid, 10)
	}
	return query
}

func (s postgresSetting) column() string {
	switch {
	case s.value == "":
		return "own." + s.name
	case s.optional:
		return "CASE WHEN own." + s.name + " IS NULL THEN NULL ELSE " + setConfig(s.name, s.value) + " END"
	}
	return setConfig(s.name, s.value)
}

// sets reports whether the plan changes anything.
func (plan postgresPlan) sets() bool { return len(plan) > 1 || plan[0].value != "" }

// check says what is wrong with the value that was read back, and what it is where it is a time.
func (s postgresSetting) check(value string, ok bool) (inForce time.Duration, mismatch string) {
	switch {
	case !ok:
		return 0, "the server has no " + s.name
	case s.exactly != "" && value != s.exactly:
		return 0, fmt.Sprintf("asked for %s %s, the server has %s in force", s.name, s.exactly, strconv.Quote(value))
	case s.exactly != "" || s.name == "application_name":
		return 0, ""
	}
	inForce, err := parsePostgresDuration(value)
	if err != nil {
		return 0, fmt.Sprintf("%s as read back: %v", s.name, err)
	}
	if s.limit > 0 && (inForce <= 0 || inForce > s.limit) {
		return inForce, fmt.Sprintf("asked for %s of at most %v, the server has %s in force", s.name, s.limit, strconv.Quote(value))
	}
	return inForce, ""
}

func setConfig(name, value string) string {
	return "set_config('" + name + "', " + value + ", false)"
}

// quoteLiteral writes s as a literal that means the same whatever standard_conforming_strings says.
func quoteLiteral(s string) string {
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if !strings.Contains(s, `\`) {
		return quoted
	}
	return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
}
