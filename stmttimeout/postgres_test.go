package stmttimeout

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestPostgresSetupIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := answering("200ms", "1min", "1ms", "on", "orders/oltp")
	a, err := Postgres().Setup(t.Context(), s, Settings{
		StatementTimeout:         200 * time.Millisecond,
		IdleInTransactionTimeout: time.Minute,
		LockTimeout:              time.Millisecond,
		ReadOnly:                 true,
		Workload:                 "oltp",
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.sent) != 1 {
		t.Errorf("sent %d statements: %q", len(s.sent), s.sent)
	}
	want := Applied{
		Session:          thisSession,
		Enforcement:      EnforcedBySession,
		StatementTimeout: 200 * time.Millisecond,
		Restore: []string{"SELECT set_config('statement_timeout', '200ms', false)" +
			", set_config('idle_in_transaction_session_timeout', '1min', false)" +
			", set_config('lock_timeout', '1ms', false)" +
			", set_config('default_transaction_read_only', 'on', false)" +
			", set_config('application_name', 'orders/oltp', false)"},
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("got  %+v\nwant %+v", a, want)
	}
}

func TestPostgresSetupComparesOnTheServer(t *testing.T) {
	t.Parallel()
	s := answering("200ms")
	if _, err := Postgres().Setup(t.Context(), s, Settings{StatementTimeout: 200 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	const own = "CAST(CASE WHEN own.statement_timeout ~ '[a-z]' THEN own.statement_timeout ELSE own.statement_timeout || ' ms' END AS interval)"
	want := "SELECT set_config('statement_timeout', CASE WHEN " + own + " > interval '0' AND " + own + " < interval '200 ms'" +
		" THEN own.statement_timeout ELSE '200' END, false), " + postgresSession +
		" FROM (SELECT current_setting('statement_timeout') AS statement_timeout) AS own"
	if s.sent[0] != want {
		t.Errorf("got  %s\nwant %s", s.sent[0], want)
	}
}

func TestPostgresSendsWholeMillisecondsRoundedUp(t *testing.T) {
	t.Parallel()
	tests := map[time.Duration]int64{
		1:                            1,
		time.Microsecond:             1,
		time.Millisecond:             1,
		199500 * time.Microsecond:    200,
		200*time.Millisecond + 1:     201,
		24 * time.Hour:               86400000,
		25 * 24 * time.Hour:          maxPostgresMillis,
		time.Duration(math.MaxInt64): maxPostgresMillis,
	}
	for d, millis := range tests {
		s := answering(fmt.Sprintf("%dms", millis))
		a, err := Postgres().Setup(t.Context(), s, Settings{StatementTimeout: d})
		if err != nil {
			t.Errorf("%v: %v", d, err)
		}
		if want := fmt.Sprintf("ELSE '%d' END", millis); !strings.Contains(s.sent[0], want) {
			t.Errorf("%v: %s has no %s", d, s.sent[0], want)
		}
		if want := time.Duration(millis) * time.Millisecond; a.StatementTimeout != want {
			t.Errorf("%v: in force %v, want %v", d, a.StatementTimeout, want)
		}
	}
}

func TestPostgresSessionThatIsTighterAlreadyStays(t *testing.T) {
	t.Parallel()
	a, err := Postgres().Setup(t.Context(), answering("150ms"), Settings{StatementTimeout: 200 * time.Millisecond})
	if err != nil || a.StatementTimeout != 150*time.Millisecond || a.Enforcement != EnforcedBySession {
		t.Errorf("got %+v, %v", a, err)
	}
	if !strings.Contains(a.Restore[0], "'150ms'") {
		t.Errorf("Restore = %q", a.Restore)
	}
}

func TestPostgresSessionsOwnTimeoutIsReadWhereNoneIsAsked(t *testing.T) {
	t.Parallel()
	tests := []struct {
		own     string
		timeout time.Duration
		by      Enforcement
	}{
		{"0", 0, EnforcedByClient},
		{"30s", 30 * time.Second, EnforcedBySession},
	}
	for _, tt := range tests {
		a, err := Postgres().Setup(t.Context(), answering(tt.own), Settings{StatementTimeout: -1})
		if err != nil || a.StatementTimeout != tt.timeout || a.Enforcement != tt.by {
			t.Errorf("%s: got %+v, %v", tt.own, a, err)
		}
		if a.Restore != nil {
			t.Errorf("%s: nothing was set, yet Restore = %q", tt.own, a.Restore)
		}
	}
}

func TestPostgresWorkloadAloneIsRestoredWithTheSessionsOwnTimeout(t *testing.T) {
	t.Parallel()
	s := answering([]byte("30s"), []byte("sqlbulkhead/admin"))
	a, err := Postgres().Setup(t.Context(), s, Settings{Workload: "admin"})
	want := []string{"SELECT set_config('statement_timeout', '30s', false), set_config('application_name', 'sqlbulkhead/admin', false)"}
	if err != nil || !reflect.DeepEqual(a.Restore, want) {
		t.Errorf("got %q, %v", a.Restore, err)
	}
	if strings.Contains(s.sent[0], "set_config('statement_timeout'") {
		t.Errorf("a timeout that was not asked for was set: %s", s.sent[0])
	}
}

func TestPostgresApplicationNameFitsAndDoesNotGrow(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fallback, workload string
		want               []string
	}{
		{"", "oltp", []string{"right(own.application_name, 5) = '/oltp'", "'sqlbulkhead'", ", 58) || '/oltp'"}},
		{"orders", "oltp", []string{"THEN 'orders' ELSE"}},
		{"", strings.Repeat("w", 40), []string{", 22) || '/www"}},
		{"", strings.Repeat("w", 80), []string{", 0) || '/www", "right(own.application_name, 63)"}},
		{`o'r\ders`, `a'b\c`, []string{`E'o''r\\ders'`, `E'/a''b\\c'`}},
		{"b\u00fcro\n", "\u00e9", []string{"'b?ro?'", "'/?'"}},
	}
	for _, tt := range tests {
		s := answering("0", "x")
		if _, err := Postgres().Setup(t.Context(), s, Settings{Workload: tt.workload, ApplicationName: tt.fallback}); err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(s.sent[0], want) {
				t.Errorf("%q %q: %s\nhas no %s", tt.fallback, tt.workload, s.sent[0], want)
			}
		}
	}
}

func TestPostgresApplicationNameIsLeftAloneWithoutAWorkload(t *testing.T) {
	t.Parallel()
	s := answering("0")
	if _, err := Postgres().Setup(t.Context(), s, Settings{ApplicationName: "orders"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(s.sent[0], "application_name") {
		t.Errorf("sent %s", s.sent[0])
	}
}

func TestPostgresRestoreQuotesWhatTheServerAnswered(t *testing.T) {
	t.Parallel()
	a, err := Postgres().Setup(t.Context(), answering("0", `o'r\xc3/oltp`), Settings{Workload: "oltp"})
	if err != nil || !strings.Contains(a.Restore[0], `E'o''r\\xc3/oltp'`) {
		t.Errorf("Restore = %q, %v", a.Restore, err)
	}
}

// askedAll is every setting at once; the columns answer in the order of its fields.
var askedAll = Settings{
	StatementTimeout:         time.Second,
	IdleInTransactionTimeout: time.Second,
	LockTimeout:              time.Second,
	ReadOnly:                 true,
}

func TestPostgresSettingThatWasNotTakenIsAnError(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		row   []sqldriver.Value
		names string
	}{
		"no timeout in force":     {[]sqldriver.Value{"0", "1s", "1s", "on"}, "statement_timeout"},
		"a looser one":            {[]sqldriver.Value{"2s", "1s", "1s", "on"}, "statement_timeout"},
		"not a time":              {[]sqldriver.Value{"soon", "1s", "1s", "on"}, "statement_timeout"},
		"NULL":                    {[]sqldriver.Value{nil, "1s", "1s", "on"}, "statement_timeout"},
		"idle timeout off":        {[]sqldriver.Value{"1s", "0", "1s", "on"}, "idle_in_transaction_session_timeout"},
		"lock timeout looser":     {[]sqldriver.Value{"1s", "1s", "1min", "on"}, "lock_timeout"},
		"still writable":          {[]sqldriver.Value{"1s", "1s", "1s", "off"}, "default_transaction_read_only"},
		"writability unknown":     {[]sqldriver.Value{"1s", "1s", "1s", nil}, "default_transaction_read_only"},
		"too few columns":         {[]sqldriver.Value{"1s"}, "2 values, not 5"},
		"no row":                  {nil, "0 values, not 5"},
		"a value of another type": {[]sqldriver.Value{int64(1000), "1s", "1s", "on"}, "statement_timeout"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := Postgres().Setup(t.Context(), answering(tt.row...), askedAll)
			if err == nil || !strings.Contains(err.Error(), tt.names) {
				t.Errorf("err = %v, want one that names %s", err, tt.names)
			}
			if !reflect.DeepEqual(a, Applied{}) {
				t.Errorf("Applied = %+v", a)
			}
		})
	}
}

func TestPostgresMismatchIsAWarningByOption(t *testing.T) {
	t.Parallel()
	a, err := Postgres(WarnOnMismatch()).Setup(t.Context(), answering("0", "0", "1s", "off"), askedAll)
	if err != nil {
		t.Fatal(err)
	}
	if a.Enforcement != EnforcedByClient || a.StatementTimeout != 0 {
		t.Errorf("got %+v", a)
	}
	if len(a.Warnings) != 3 {
		t.Errorf("Warnings = %q", a.Warnings)
	}
}

func TestPostgresLooserTimeoutIsLeftToTheClientByOption(t *testing.T) {
	t.Parallel()
	a, err := Postgres(WarnOnMismatch()).Setup(t.Context(), answering("1min"), Settings{StatementTimeout: time.Second})
	if err != nil || a.Enforcement != EnforcedByClient || a.StatementTimeout != time.Minute || len(a.Warnings) != 1 {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestPostgresServerWithoutAnOptionalSettingIsAWarning(t *testing.T) {
	t.Parallel()
	s := answering("1s", nil, nil, "on")
	a, err := Postgres().Setup(t.Context(), s, askedAll)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"the server has no idle_in_transaction_session_timeout", "the server has no lock_timeout"}
	if !reflect.DeepEqual(a.Warnings, want) {
		t.Errorf("Warnings = %q", a.Warnings)
	}
	if strings.Contains(a.Restore[0], "lock_timeout") {
		t.Errorf("Restore sets what the server does not have: %q", a.Restore)
	}
	if !strings.Contains(s.sent[0], "current_setting('lock_timeout', true)") {
		t.Errorf("sent %s", s.sent[0])
	}
}

func TestPostgresDriversErrorComesOutOfSetupAsItCame(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{
		sqldriver.ErrBadConn,
		context.DeadlineExceeded,
		&pgError{Code: "42704", Message: "unrecognized configuration parameter"},
	} {
		if _, err := Postgres().Setup(t.Context(), &scriptedSession{err: cause}, askedAll); err != cause {
			t.Errorf("got %v, want %v", err, cause)
		}
	}
}

func TestPostgresRefusedSetupIsAWarningByOption(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{
		&pgError{Code: "42883", Message: "unknown function: set_config()"},
		&pqError{Code: "0A000", Message: "not supported"},
	} {
		a, err := Postgres(WarnOnMismatch()).Setup(t.Context(), &scriptedSession{err: cause}, askedAll)
		if err != nil || a.Enforcement != EnforcedByClient || len(a.Warnings) != 1 || a.Restore != nil {
			t.Errorf("%v: got %+v, %v", cause, a, err)
		}
	}
	for _, cause := range []error{sqldriver.ErrBadConn, errOther, &pgError{Code: "57P01"}} {
		if _, err := Postgres(WarnOnMismatch()).Setup(t.Context(), &scriptedSession{err: cause}, askedAll); err != cause {
			t.Errorf("%v became %v", cause, err)
		}
	}
}

func TestPostgresVerdict(t *testing.T) {
	t.Parallel()
	const timeout, request = "canceling statement due to statement timeout", "canceling statement due to user request"
	tests := []struct {
		name string
		err  error
		want Verdict
	}{
		{"nil", nil, NotTimeout},
		{"pgx timeout", &pgError{"ERROR", "57014", timeout}, Exceeded},
		{"pq timeout", &pqError{"57014", timeout}, Exceeded},
		{"method alone, timeout", stateError{"57014", "ERROR: " + timeout}, Exceeded},
		{"CockroachDB", &pgError{"ERROR", "57014", "query execution canceled due to statement timeout"}, Exceeded},
		{"pgx cancel", &pgError{"ERROR", "57014", request}, NotTimeout},
		{"pq cancel", &pqError{"57014", request}, NotTimeout},
		{"localised", &pgError{"FEHLER", "57014", "storniere Anfrage wegen Zeitüberschreitung der Anfrage"}, ExceededOrCanceled},
		{"CockroachDB cancel", &pgError{"ERROR", "57014", "query execution canceled"}, ExceededOrCanceled},
		{"Redshift", &pqError{"57014", "Query (12) cancelled on user's request"}, ExceededOrCanceled},
		{"lock timeout", &pgError{"ERROR", "55P03", "canceling statement due to lock timeout"}, NotTimeout},
		{"idle in transaction", &pgError{"FATAL", "25P03", "terminating connection due to idle-in-transaction timeout"}, NotTimeout},
		{"transaction timeout", &pgError{"FATAL", "25P04", "terminating connection due to transaction timeout"}, NotTimeout},
		{"the text without the code", errors.New(timeout), NotTimeout},
		{"the text with another code", &pgError{"ERROR", "P0001", timeout}, NotTimeout},
		{"wrapped", fmt.Errorf("select: %w", &pgError{"ERROR", "57014", timeout}), Exceeded},
		{"joined", errors.Join(errOther, &pqError{"57014", timeout}), Exceeded},
		{"ours", &Error{Err: &pgError{"ERROR", "57014", timeout}}, Exceeded},
		{"client deadline", context.DeadlineExceeded, NotTimeout},
		{"bad connection", sqldriver.ErrBadConn, NotTimeout},
		{"a MySQL number", &myError{Number: 3024}, NotTimeout},
	}
	for _, tt := range tests {
		if got := Postgres().Verdict(tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// quotingError has the statement in its text, as some wrappers do, and the server's message apart.
type quotingError struct{ Message string }

func (e quotingError) Error() string  { return `in "SELECT 'statement timeout'": ` + e.Message }
func (quotingError) SQLState() string { return "57014" }

func TestPostgresVerdictReadsTheMessageNotTheStatement(t *testing.T) {
	t.Parallel()
	if got := Postgres().Verdict(quotingError{"annulation de la requête"}); got != ExceededOrCanceled {
		t.Errorf("got %v", got)
	}
}
