package partition

import (
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

type poolSet = map[workload.Name]PoolConfig

func standardOnly() poolSet {
	return poolSet{workload.OLTP: {}, workload.Reporting: {}, workload.Batch: {}, workload.Admin: {}}
}

func mustResolve(t *testing.T, in poolSet, budget int) poolSet {
	t.Helper()
	out, err := resolve(in, budget, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStandardPoolsHaveTheDocumentedDefaults(t *testing.T) {
	t.Parallel()
	want := func(open, waiting int, acquire, statement time.Duration) PoolConfig {
		return PoolConfig{MaxOpenConns: open, MaxIdleConns: open, MaxWaiting: waiting, AcquireTimeout: acquire, StatementTimeout: statement,
			DialTimeout: 5 * time.Second, ConnMaxLifetime: 30 * time.Minute, ConnMaxIdleTime: 5 * time.Minute}
	}
	got := mustResolve(t, standardOnly(), 0)
	wants := poolSet{
		workload.OLTP:      want(10, 20, 100*time.Millisecond, 5*time.Second),
		workload.Reporting: want(3, 3, 50*time.Millisecond, time.Minute),
		workload.Batch:     want(2, 4, time.Second, 15*time.Minute),
		workload.Admin:     want(2, 2, 5*time.Second, NoTimeout),
	}
	for name, c := range wants {
		if got[name] != c {
			t.Errorf("%s:\ngot  %v\nwant %v", name, got[name], c)
		}
	}
}

func TestOtherPoolQueuesAsManyAsItServesButAtMostTen(t *testing.T) {
	t.Parallel()
	got := mustResolve(t, poolSet{"small": {MaxOpenConns: 4}, "large": {MaxOpenConns: 40}, "none": {MaxOpenConns: 4, MaxWaiting: NoQueue}}, 0)
	if s := got["small"]; s.MaxWaiting != 4 || s.AcquireTimeout != 100*time.Millisecond || s.StatementTimeout != 30*time.Second {
		t.Errorf("small: %v", s)
	}
	if got["large"].MaxWaiting != 10 || got["none"].MaxWaiting != NoQueue {
		t.Errorf("large: %v, none: %v", got["large"], got["none"])
	}
}

func TestIdleConnsAreARealNumber(t *testing.T) {
	t.Parallel()
	got := mustResolve(t, poolSet{
		"default": {MaxOpenConns: 4}, "none": {MaxOpenConns: 4, MaxIdleConns: -1}, "far-below": {MaxOpenConns: 4, MaxIdleConns: -7},
		"some": {MaxOpenConns: 4, MaxIdleConns: 1}, "more": {MaxOpenConns: 4, MaxIdleConns: 9},
	}, 0)
	for name, want := range map[workload.Name]int{"default": 4, "none": 0, "far-below": 0, "some": 1, "more": 4} {
		if n := got[name].MaxIdleConns; n != want {
			t.Errorf("%s: %d, want %d", name, n, want)
		}
	}
}

func TestExplicitValuesOverrideDefaults(t *testing.T) {
	t.Parallel()
	set := PoolConfig{MaxOpenConns: 7, MaxIdleConns: 2, MaxWaiting: 1, AcquireTimeout: NoWait, StatementTimeout: NoTimeout, DialTimeout: time.Second,
		ConnMaxLifetime: NoTimeout, ConnMaxIdleTime: NoTimeout, IdleInTransactionTimeout: time.Minute, LockTimeout: time.Second,
		ReadOnly: true, DSN: "host=replica"}
	if got := mustResolve(t, poolSet{workload.OLTP: set}, 0)[workload.OLTP]; got != set {
		t.Fatalf("got %v, want %v", got, set)
	}
}

func TestResolveLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	in := standardOnly()
	mustResolve(t, in, 20)
	if in[workload.OLTP] != (PoolConfig{}) {
		t.Fatalf("input became %v", in)
	}
}

func TestNoPoolsResolveToNone(t *testing.T) {
	t.Parallel()
	if got := mustResolve(t, nil, 20); len(got) != 0 {
		t.Fatalf("got %v", got)
	}
}

func TestRefusedConfigurationNamesPoolFieldValueAndBound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name workload.Name
		set  PoolConfig
		want string
	}{
		{"reporting", PoolConfig{MaxOpenConns: -2}, `partition: pool "reporting": MaxOpenConns must be positive, got -2`},
		{"etl", PoolConfig{}, `partition: pool "etl": MaxOpenConns is required (only oltp, reporting, batch and admin have a default)`},
		{"oltp", PoolConfig{MaxWaiting: -2}, `partition: pool "oltp": MaxWaiting must be positive, or -1 (NoQueue), got -2`},
		{"oltp", PoolConfig{AcquireTimeout: -time.Second}, `partition: pool "oltp": AcquireTimeout must be positive, or NoWait, got -1s`},
		{"oltp", PoolConfig{StatementTimeout: -2}, `partition: pool "oltp": StatementTimeout must be positive, or NoTimeout, got -2ns`},
		{"oltp", PoolConfig{DialTimeout: NoTimeout}, `partition: pool "oltp": DialTimeout must be positive, got -1ns`},
		{"oltp", PoolConfig{ConnMaxLifetime: -2}, `partition: pool "oltp": ConnMaxLifetime must be positive, or NoTimeout, got -2ns`},
		{"oltp", PoolConfig{ConnMaxIdleTime: -2}, `partition: pool "oltp": ConnMaxIdleTime must be positive, or NoTimeout, got -2ns`},
		{"oltp", PoolConfig{IdleInTransactionTimeout: -1}, `partition: pool "oltp": IdleInTransactionTimeout must be positive, got -1ns`},
		{"oltp", PoolConfig{LockTimeout: -1}, `partition: pool "oltp": LockTimeout must be positive, got -1ns`},
		{"Oltp", PoolConfig{MaxOpenConns: 1}, `partition: pool "Oltp": ` + workload.Name("Oltp").Validate().Error()},
	} {
		_, err := resolve(poolSet{c.name: c.set, "zz": {MaxOpenConns: 1}}, 0, nil)
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestFirstOfSeveralProblemsIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	in := poolSet{"a": {MaxOpenConns: 1, LockTimeout: -1, MaxWaiting: -5}, "b": {}, "c": {MaxOpenConns: -1}, "D": {}}
	for range 50 {
		_, err := resolve(in, -1, nil)
		if err == nil || !strings.Contains(err.Error(), `"D"`) {
			t.Fatalf("got %v", err)
		}
	}
	delete(in, "D")
	if _, err := resolve(in, 0, nil); err == nil || !strings.Contains(err.Error(), `pool "a": MaxWaiting`) {
		t.Fatalf("got %v", err)
	}
}
