package stmttimeout

import (
	sqldriver "database/sql/driver"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestMariaDBSetupIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := answering(0.2, uint64(2), uint64(1), int64(90), []byte("ON"))
	a, err := MariaDB().Setup(t.Context(), s, Settings{
		StatementTimeout:         199999900 * time.Nanosecond,
		LockTimeout:              1500 * time.Millisecond,
		IdleInTransactionTimeout: 89*time.Second + 1,
		ReadOnly:                 true,
		Workload:                 "oltp",
	})
	if err != nil {
		t.Fatal(err)
	}
	wantSent := []string{"BEGIN NOT ATOMIC SET SESSION TRANSACTION READ ONLY" +
		"; SET @@SESSION.max_statement_time = IF(@@SESSION.max_statement_time > 0 AND @@SESSION.max_statement_time < 0.200000," +
		" @@SESSION.max_statement_time, 0.200000)" +
		", @@SESSION.innodb_lock_wait_timeout = CAST(LEAST(@@SESSION.innodb_lock_wait_timeout, 2) AS UNSIGNED)" +
		", @@SESSION.lock_wait_timeout = CAST(LEAST(@@SESSION.lock_wait_timeout, 2) AS UNSIGNED)" +
		", @@SESSION.idle_transaction_timeout = CAST(IF(@@SESSION.idle_transaction_timeout > 0 AND @@SESSION.idle_transaction_timeout < 90," +
		" @@SESSION.idle_transaction_timeout, 90) AS UNSIGNED)" +
		"; SELECT @@SESSION.max_statement_time, @@SESSION.innodb_lock_wait_timeout, @@SESSION.lock_wait_timeout" +
		", @@SESSION.idle_transaction_timeout, " + mariadbReadOnly + ", " + mysqlSession + "; END"}
	if !reflect.DeepEqual(s.sent, wantSent) {
		t.Errorf("sent %s", strings.Join(s.sent, "\n"))
	}
	want := Applied{
		Session:          thisSession,
		Enforcement:      EnforcedBySession,
		StatementTimeout: 200 * time.Millisecond,
		Restore: []string{"BEGIN NOT ATOMIC SET SESSION TRANSACTION READ ONLY; SET @@SESSION.max_statement_time = 0.200000" +
			", @@SESSION.innodb_lock_wait_timeout = 2, @@SESSION.lock_wait_timeout = 1, @@SESSION.idle_transaction_timeout = 90; END"},
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("got  %+v\nwant %+v", a, want)
	}
}

func TestMariaDBOnlyReadsWhereNothingIsAsked(t *testing.T) {
	t.Parallel()
	for own, by := range map[float64]Enforcement{0: EnforcedByClient, 30: EnforcedBySession} {
		s := answering(own)
		a, err := MariaDB().Setup(t.Context(), s, Settings{Workload: "oltp"})
		want := Applied{Session: thisSession, Enforcement: by, StatementTimeout: time.Duration(own) * time.Second}
		if err != nil || !reflect.DeepEqual(a, want) {
			t.Errorf("got %+v, %v", a, err)
		}
		if !reflect.DeepEqual(s.sent, []string{"SELECT @@SESSION.max_statement_time, " + mysqlSession}) {
			t.Errorf("sent %q", s.sent)
		}
	}
}

func TestMariaDBSendsSecondsRoundedUpToTheMicrosecond(t *testing.T) {
	t.Parallel()
	tests := map[time.Duration]string{
		1:                            "0.000001",
		time.Microsecond + 1:         "0.000002",
		50 * time.Millisecond:        "0.050000",
		5 * time.Second:              "5.000000",
		90500 * time.Millisecond:     "90.500000",
		time.Duration(math.MaxInt64): "31536000.000000",
	}
	for d, literal := range tests {
		s := answering(literal)
		a, err := MariaDB().Setup(t.Context(), s, Settings{StatementTimeout: d})
		if err != nil {
			t.Errorf("%v: %v", d, err)
		}
		if !strings.Contains(s.sent[0], "@@SESSION.max_statement_time, "+literal+")") {
			t.Errorf("%v: sent %s", d, s.sent[0])
		}
		if want := []string{"SET @@SESSION.max_statement_time = " + literal}; !reflect.DeepEqual(a.Restore, want) {
			t.Errorf("%v: Restore = %q", d, a.Restore)
		}
	}
}

func TestMariaDBSessionThatIsTighterAlreadyStays(t *testing.T) {
	t.Parallel()
	// A lock timeout of 0 does not wait at all: the tightest there is.
	a, err := MariaDB().Setup(t.Context(), answering(0.15, int64(0), int64(0)), Settings{StatementTimeout: time.Second, LockTimeout: time.Second})
	if err != nil || a.StatementTimeout != 150*time.Millisecond {
		t.Errorf("got %+v, %v", a, err)
	}
	want := []string{"SET @@SESSION.max_statement_time = 0.150000, @@SESSION.innodb_lock_wait_timeout = 0, @@SESSION.lock_wait_timeout = 0"}
	if !reflect.DeepEqual(a.Restore, want) {
		t.Errorf("Restore = %q", a.Restore)
	}
}

func TestMariaDBSettingThatWasNotTakenIsAnError(t *testing.T) {
	t.Parallel()
	one := int64(1)
	tests := map[string]struct {
		row   []sqldriver.Value
		names string
	}{
		"off":             {[]sqldriver.Value{0.0, one, one, one, "ON"}, "max_statement_time"},
		"looser":          {[]sqldriver.Value{1.000001, one, one, one, "ON"}, "max_statement_time"},
		"lock looser":     {[]sqldriver.Value{1.0, one, int64(2), one, "ON"}, "lock_wait_timeout"},
		"idle off":        {[]sqldriver.Value{1.0, one, one, int64(0), "ON"}, "idle_transaction_timeout"},
		"writable":        {[]sqldriver.Value{1.0, one, one, one, "OFF"}, "transaction_read_only"},
		"unknown":         {[]sqldriver.Value{1.0, one, one, one, nil}, "transaction_read_only"},
		"too few columns": {[]sqldriver.Value{1.0}, "2 values, not 6"},
		"no row":          {nil, "0 values, not 6"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := MariaDB().Setup(t.Context(), answering(tt.row...), askedAll)
			if err == nil || !strings.Contains(err.Error(), tt.names) {
				t.Errorf("err = %v, want one that names %s", err, tt.names)
			}
			if !reflect.DeepEqual(a, Applied{}) {
				t.Errorf("Applied = %+v", a)
			}
		})
	}
}
