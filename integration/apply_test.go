package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestAppliedStatementTimeoutIsInForceForTheNextBorrower(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r := setup(t, tg)
		session, last := "", ""
		for _, step := range []struct {
			limit time.Duration
			same  bool // the connection need not be replaced
		}{
			{4321 * ms, false}, {3210 * ms, true}, {9876 * ms, false}, {partition.NoTimeout, false}, {1234 * ms, true},
		} {
			err := r.reg.Apply(partition.Config{Pools: map[workload.Name]partition.PoolConfig{workload.OLTP: {
				MaxOpenConns: 1, AcquireTimeout: 10 * time.Second, StatementTimeout: step.limit,
			}}})
			if err != nil {
				t.Fatal(err)
			}
			limit := max(step.limit, 0)
			want := fmt.Sprint(limit.Seconds())
			if tg.arg == "$1" && limit > 0 {
				want = fmt.Sprintf("%dms", limit.Milliseconds())
			}
			if got := ask(t, oltp, r.db, tg.limit); got != want {
				t.Errorf("after %v the server has %s, want %s", step.limit, got, want)
			}
			last, session = session, ask(t, oltp, r.db, tg.session)
			if last != "" && (last == session) != step.same {
				t.Errorf("after %v: session %s, before %s", step.limit, session, last)
			}
		}
	})
}

func TestNeitherApplyNorResizeSplitsPrivateMemoryOfSQLite(t *testing.T) {
	t.Parallel()
	one := partition.Config{Pools: map[workload.Name]partition.PoolConfig{workload.OLTP: {MaxOpenConns: 1}}}
	db, err := partition.Open("sqlite", ":memory:", partition.WithoutPool(workload.Reporting), partition.WithoutPool(workload.Batch),
		partition.WithoutPool(workload.Admin), partition.WithConfig(one))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	reg, _ := partition.RegistryOf(db)
	if err := reg.Apply(partition.Config{}); err == nil || !strings.Contains(err.Error(), "cache=shared") {
		t.Errorf("ten connections: %v", err)
	}
	if err := reg.Apply(one); err != nil {
		t.Errorf("one connection: %v", err)
	}
	if p, _ := reg.Pool(workload.OLTP); p.Resize(2) == nil || p.Stats().MaxOpenConns != 1 {
		t.Error("Resize split it")
	}
}
