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

func TestMySQLSetsThenReadsBack(t *testing.T) {
	t.Parallel()
	s := answering(int64(200), uint64(2), []byte("1"), int64(1))
	a, err := MySQL().Setup(t.Context(), s, Settings{
		StatementTimeout: 199500 * time.Microsecond,
		LockTimeout:      1500 * time.Millisecond,
		ReadOnly:         true,
		Workload:         "oltp",
	})
	if err != nil {
		t.Fatal(err)
	}
	wantSent := []string{
		"SET SESSION TRANSACTION READ ONLY",
		"SET @@SESSION.max_execution_time = CAST(IF(@@SESSION.max_execution_time > 0 AND @@SESSION.max_execution_time < 200," +
			" @@SESSION.max_execution_time, 200) AS UNSIGNED)" +
			", @@SESSION.innodb_lock_wait_timeout = CAST(LEAST(@@SESSION.innodb_lock_wait_timeout, 2) AS UNSIGNED)" +
			", @@SESSION.lock_wait_timeout = CAST(LEAST(@@SESSION.lock_wait_timeout, 2) AS UNSIGNED)",
		"SELECT @@SESSION.max_execution_time, @@SESSION.innodb_lock_wait_timeout, @@SESSION.lock_wait_timeout, @@SESSION.transaction_read_only, " + mysqlSession,
	}
	if !reflect.DeepEqual(s.sent, wantSent) {
		t.Errorf("sent %s", strings.Join(s.sent, "\n"))
	}
	want := Applied{
		Session:          thisSession,
		Enforcement:      EnforcedForSelects,
		StatementTimeout: 200 * time.Millisecond,
		Restore: []string{
			"SET SESSION TRANSACTION READ ONLY",
			"SET @@SESSION.max_execution_time = 200, @@SESSION.innodb_lock_wait_timeout = 2, @@SESSION.lock_wait_timeout = 1",
		},
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("got  %+v\nwant %+v", a, want)
	}
}

func TestMySQLOnlyReadsWhereNothingIsAsked(t *testing.T) {
	t.Parallel()
	for own, by := range map[int64]Enforcement{0: EnforcedByClient, 30000: EnforcedForSelects} {
		s := answering(own)
		a, err := MySQL().Setup(t.Context(), s, Settings{StatementTimeout: -1, Workload: "oltp"})
		want := Applied{Session: thisSession, Enforcement: by, StatementTimeout: time.Duration(own) * time.Millisecond}
		if err != nil || !reflect.DeepEqual(a, want) {
			t.Errorf("got %+v, %v", a, err)
		}
		if !reflect.DeepEqual(s.sent, []string{"SELECT @@SESSION.max_execution_time, " + mysqlSession}) {
			t.Errorf("sent %q", s.sent)
		}
	}
}

func TestMySQLHasNoIdleTimeoutAndSaysSo(t *testing.T) {
	t.Parallel()
	a, err := MySQL().Setup(t.Context(), answering(int64(1000)), Settings{StatementTimeout: time.Second, IdleInTransactionTimeout: time.Second})
	if err != nil || len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "IdleInTransactionTimeout") {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestMySQLLimitIsCutToWhatTheServerTakes(t *testing.T) {
	t.Parallel()
	s := answering(int64(math.MaxUint32))
	a, err := MySQL().Setup(t.Context(), s, Settings{StatementTimeout: math.MaxInt64})
	if err != nil || a.StatementTimeout != math.MaxUint32*time.Millisecond {
		t.Errorf("got %+v, %v", a, err)
	}
	if !strings.Contains(s.sent[0], ", 4294967295)") {
		t.Errorf("sent %s", s.sent[0])
	}
}

func TestMySQLSettingThatWasNotTakenIsAnError(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		row   []sqldriver.Value
		names string
	}{
		"off":                  {[]sqldriver.Value{int64(0), int64(1), int64(1), int64(1)}, "max_execution_time"},
		"looser":               {[]sqldriver.Value{int64(1001), int64(1), int64(1), int64(1)}, "max_execution_time"},
		"NULL":                 {[]sqldriver.Value{nil, int64(1), int64(1), int64(1)}, "max_execution_time"},
		"row lock looser":      {[]sqldriver.Value{int64(1000), int64(50), int64(1), int64(1)}, "innodb_lock_wait_timeout"},
		"metadata lock looser": {[]sqldriver.Value{int64(1000), int64(1), int64(50), int64(1)}, "lock_wait_timeout"},
		"writable":             {[]sqldriver.Value{int64(1000), int64(1), int64(1), int64(0)}, "transaction_read_only"},
		"writable, as text":    {[]sqldriver.Value{int64(1000), int64(1), int64(1), "OFF"}, "transaction_read_only"},
		"too few columns":      {[]sqldriver.Value{int64(1000)}, "2 values, not 5"},
		"no row":               {nil, "0 values, not 5"},
	}
	want := Settings{StatementTimeout: time.Second, LockTimeout: time.Second, ReadOnly: true}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := MySQL().Setup(t.Context(), answering(tt.row...), want); err == nil || !strings.Contains(err.Error(), tt.names) {
				t.Errorf("err = %v, want one that names %s", err, tt.names)
			}
		})
	}
}

func TestMySQLFamilysDriverErrorComesOutOfSetupAsItCame(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{sqldriver.ErrBadConn, &myError{Number: 1193}} {
		for _, d := range []Dialect{MySQL(), MariaDB()} {
			for _, want := range []Settings{{}, {StatementTimeout: time.Second}} {
				if _, err := d.Setup(t.Context(), &scriptedSession{err: cause}, want); err != cause {
					t.Errorf("%s: got %v, want %v", d.Name(), err, cause)
				}
			}
		}
	}
}

// Shapes that a driver's or a wrapper's error may have.
type (
	signedNumber   struct{ Number int32 }
	textNumber     struct{ Number string }
	hiddenNumber   struct{ number uint16 }
	embedsMyError  struct{ *myError }
	valueMyError   struct{ Number uint16 }
	unwrapsToValue struct {
		Number int // this wrapper's own
		err    error
	}
)

func (e signedNumber) Error() string   { return fmt.Sprint(e.Number) }
func (e textNumber) Error() string     { return e.Number }
func (e hiddenNumber) Error() string   { return fmt.Sprint(e.number) }
func (e embedsMyError) Error() string  { return "embeds" }
func (e valueMyError) Error() string   { return fmt.Sprint(e.Number) }
func (e unwrapsToValue) Error() string { return fmt.Sprint(e.Number, e.err) }
func (e unwrapsToValue) Unwrap() error { return e.err }

func TestMySQLFamilyVerdict(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		want Verdict
	}{
		{"nil", nil, NotTimeout},
		{"MariaDB timeout", &myError{Number: 1969}, Exceeded},
		{"MySQL timeout", &myError{Number: 3024}, Exceeded},
		{"killed", &myError{Number: 1317}, ExceededOrCanceled},
		{"lock wait", &myError{Number: 1205}, NotTimeout},
		{"duplicate key", &myError{Number: 1062}, NotTimeout},
		{"wrapped", fmt.Errorf("exec: %w", &myError{Number: 1969}), Exceeded},
		{"joined", errors.Join(errOther, &myError{Number: 3024}), Exceeded},
		{"deep in a list", fmt.Errorf("x: %w", listError{nil, listError{errOther, &myError{Number: 1317}}}), ExceededOrCanceled},
		{"timeout beside a kill", listError{&myError{Number: 1317}, &myError{Number: 1969}}, Exceeded},
		{"by value", valueMyError{3024}, Exceeded},
		{"signed", &signedNumber{1969}, Exceeded},
		{"embedded", embedsMyError{&myError{Number: 1969}}, Exceeded},
		{"behind a wrapper with a number of its own", unwrapsToValue{7, &myError{Number: 1969}}, Exceeded},
		{"ours", &Error{Err: &myError{Number: 1969}}, Exceeded},
		{"embedded nil", embedsMyError{}, NotTimeout},
		{"nil pointer", (*myError)(nil), NotTimeout},
		{"a text", textNumber{"1969"}, NotTimeout},
		{"a hidden number", hiddenNumber{1969}, NotTimeout},
		{"a list", listError(nil), NotTimeout},
		{"client deadline", context.DeadlineExceeded, NotTimeout},
		{"bad connection", sqldriver.ErrBadConn, NotTimeout},
		{"a SQLSTATE", &pgError{Code: "57014", Message: "statement timeout"}, NotTimeout},
	}
	for _, tt := range tests {
		for _, d := range []Dialect{MySQL(), MariaDB()} {
			if got := d.Verdict(tt.err); got != tt.want {
				t.Errorf("%s: %s: %v, want %v", d.Name(), tt.name, got, tt.want)
			}
		}
	}
}
