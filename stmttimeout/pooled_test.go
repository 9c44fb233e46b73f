package stmttimeout

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func setupPooled(t *testing.T, s Session, want Settings, opts ...PostgresOption) Applied {
	t.Helper()
	a, err := Postgres(append(opts, TransactionPooling())...).Setup(t.Context(), s, want)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestPooledSetupOnlyReadsWhatTheRoleBeginsWith(t *testing.T) {
	t.Parallel()
	s := pooledAnswering("0", "0", "0", "off")
	a := setupPooled(t, s, Settings{
		StatementTimeout:         1500 * time.Microsecond,
		IdleInTransactionTimeout: time.Minute,
		LockTimeout:              time.Second,
		ReadOnly:                 true,
		Workload:                 "oltp",
		BackendPID:               7,
	})
	if len(s.sent) != 1 || !strings.HasPrefix(s.sent[0], "SELECT max(") || !strings.HasSuffix(s.sent[0], " FROM pg_settings WHERE name IN ("+
		"'statement_timeout', 'idle_in_transaction_session_timeout', 'lock_timeout', 'default_transaction_read_only')") {
		t.Errorf("sent %q", s.sent)
	}
	want := Applied{
		Enforcement:      EnforcedByTransaction,
		StatementTimeout: 2 * time.Millisecond,
		Transaction: []string{"SET LOCAL statement_timeout = 2; SET LOCAL idle_in_transaction_session_timeout = 60000; " +
			"SET LOCAL lock_timeout = 1000; SET TRANSACTION READ ONLY"},
		Warnings: []string{
			"LockTimeout holds within transactions alone: set lock_timeout for the role (ALTER ROLE … SET)",
			"ReadOnly holds within transactions alone: set default_transaction_read_only for the role (ALTER ROLE … SET)",
		},
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("got  %+v\nwant %+v", a, want)
	}
}

func TestPooledEnforcementIsTheRolesWhereItIsAsTight(t *testing.T) {
	t.Parallel()
	const asked = 200 * time.Millisecond
	set := []string{"SET LOCAL statement_timeout = 200"}
	for _, c := range []struct {
		own   string
		asked time.Duration
		want  Applied
	}{
		{"150", asked, Applied{Enforcement: EnforcedByRole, StatementTimeout: 150 * time.Millisecond}},
		{"200", asked, Applied{Enforcement: EnforcedByRole, StatementTimeout: asked}},
		{"201", asked, Applied{Enforcement: EnforcedByTransaction, StatementTimeout: asked, Transaction: set}},
		{"0", asked, Applied{Enforcement: EnforcedByTransaction, StatementTimeout: asked, Transaction: set}},
		{"5000", 0, Applied{Enforcement: EnforcedByRole, StatementTimeout: 5 * time.Second}},
		{"0", 0, Applied{Enforcement: EnforcedByClient}},
	} {
		if a := setupPooled(t, pooledAnswering(c.own), Settings{StatementTimeout: c.asked}); !reflect.DeepEqual(a, c.want) {
			t.Errorf("own %s, asked %v: got %+v, want %+v", c.own, c.asked, a, c.want)
		}
	}
}

func TestPooledServerThatLacksASettingIsAWarningAndNothingIsSetFromIt(t *testing.T) {
	t.Parallel()
	a := setupPooled(t, pooledAnswering(nil), Settings{StatementTimeout: time.Second})
	want := Applied{Enforcement: EnforcedByClient, Warnings: []string{"the server has no statement_timeout"}}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("got %+v", a)
	}
}

func TestPooledSetupThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	pooled := Postgres(TransactionPooling())
	for _, s := range []*scriptedSession{pooledAnswering("soon"), pooledAnswering(), pooledAnswering("1", "2"), {err: errOther}} {
		if a, err := pooled.Setup(t.Context(), s, Settings{StatementTimeout: time.Second}); err == nil {
			t.Errorf("%v gave %+v", s.row, a)
		}
	}
	refused := &scriptedSession{err: &pgError{Code: "42P01", Message: "no pg_settings"}}
	if a := setupPooled(t, refused, Settings{}, WarnOnMismatch()); a.Enforcement != EnforcedByClient || len(a.Warnings) != 1 {
		t.Errorf("got %+v", a)
	}
}

func TestSetupThroughAPoolerSetsNothing(t *testing.T) {
	t.Parallel()
	s := answering("200ms")
	want := Settings{StatementTimeout: 200 * time.Millisecond, BackendPID: 4242}
	if _, err := Postgres().Setup(t.Context(), s, want); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(s.sent[0], " AS own WHERE pg_backend_pid() = 4242") {
		t.Errorf("sent %s", s.sent[0])
	}
	if _, err := Postgres().Setup(t.Context(), pooledAnswering(), want); err != ErrPooled {
		t.Errorf("no row: %v, want ErrPooled", err)
	}
	if _, err := Postgres().Setup(t.Context(), pooledAnswering(), Settings{}); err == nil || errors.Is(err, ErrPooled) {
		t.Errorf("no row where none was to be expected: %v", err)
	}
}

// lender is a pooler's answer to the question whose session it is, one by one.
type lender struct {
	pids  []sqldriver.Value
	asked int
}

// client is a connection to the pooler.
type client struct{ *lender }

func (c client) QueryRow(context.Context, string) ([]sqldriver.Value, error) {
	pid := c.pids[c.asked%len(c.pids)]
	c.asked++
	if err, failed := pid.(error); failed {
		return nil, err
	}
	return []sqldriver.Value{pid}, nil
}

func (client) Exec(context.Context, string) error { return nil }

func TestSessionsThatAreSharedAreRecognised(t *testing.T) {
	t.Parallel()
	v := func(pids ...sqldriver.Value) []sqldriver.Value { return pids }
	for name, c := range map[string]struct {
		pids []sqldriver.Value // by turns, in the order of the questions: a b b a
		want bool
	}{
		"the one used last":       {v(int64(1)), true},
		"in turn, of two":         {v(int64(1), int64(2)), true},
		"in turn, of three":       {v(int64(1), int64(2), int64(3)), true},
		"of lib/pq":               {v("1"), true},
		"one each":                {v(int64(1), int64(2), int64(2), int64(1)), false},
		"no process, CockroachDB": {v(int64(-1)), false},
		"no number":               {v("x"), false},
		"NULL":                    {v(nil), false},
	} {
		shared := &lender{pids: c.pids}
		if got, err := SharesSessions(t.Context(), client{shared}, client{shared}); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	failing := &lender{pids: v(int64(1), errOther)}
	if _, err := SharesSessions(t.Context(), client{failing}, client{failing}); err != errOther {
		t.Errorf("got %v", err)
	}
}
