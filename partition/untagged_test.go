package partition_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func exportOrders(db *sql.DB) error {
	rows, err := db.Query("rows 3 sleep 1s")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func countOrders(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec("sleep 100ms"); err != nil {
		return err
	}
	return tx.Commit()
}

func touchOrder(db *sql.DB) error {
	var one int
	return db.QueryRow("rows 1").Scan(&one)
}

func TestUntaggedWorkIsFoundWhereItIsDoneTheHeaviestFirst(t *testing.T) {
	t.Parallel()
	for _, mode := range []partition.Mode{partition.Observe, partition.Enforce} {
		for name, stacks := range map[string]bool{"by who gives back": false, "by who acquires": true} {
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, fakedb.New(), partition.WithMode(mode), partition.WithPool(workload.OLTP, partition.PoolConfig{LeakStacks: stacks}))
				const touches = 20_000
				for range touches {
					if err := touchOrder(r.db); err != nil {
						t.Fatal(err)
					}
				}
				for range 20 {
					if err := countOrders(r.db); err != nil {
						t.Fatal(err)
					}
				}
				for range 7 {
					if err := exportOrders(r.db); err != nil {
						t.Fatal(err)
					}
				}
				r.mustExec(reporting, "sleep 50s") // tagged
				sites := r.reg.Untagged()
				for i, want := range []struct {
					function      string
					least, most   uint64
					p99, holdTime time.Duration
				}{
					{"exportOrders", 7, 7, 3 * time.Second, 21 * time.Second},
					{"countOrders", 20, 20, 100 * ms, 2 * time.Second},
					{"touchOrder", touches * 9 / 10, touches * 11 / 10, 0, 0},
				} {
					if i >= len(sites) {
						t.Fatalf("%s, %s: %d sites", mode, name, len(sites))
					}
					s := sites[i]
					if !strings.HasPrefix(s.Site, "github.com/sqlbulkhead/sqlbulkhead/partition_test."+want.function+" ") || !strings.Contains(s.Site, "untagged_test.go:") {
						t.Errorf("%s, %s: site %d is %s, want %s", mode, name, i, s.Site, want.function)
					}
					if s.Count < want.least || s.Count > want.most || s.HoldTime != want.holdTime || s.HoldP99 < want.p99 || s.HoldP99 > want.p99*9/8+2*time.Microsecond {
						t.Errorf("%s, %s: %s: %d times, p99 %v, %v in all", mode, name, want.function, s.Count, s.HoldP99, s.HoldTime)
					}
					if !strings.Contains(s.Stack, "TestUntaggedWork") {
						t.Errorf("%s, %s: the stack of %s is %s", mode, name, want.function, s.Stack)
					}
				}
				if plan := r.reg.Plan(); plan.Untagged != touches+27 {
					t.Errorf("%s, %s: %d untagged", mode, name, plan.Untagged)
				}
			})
		}
	}
}

func TestWorkThroughAPoolsOwnHandleIsNotUntagged(t *testing.T) {
	t.Parallel()
	for _, mode := range []partition.Mode{partition.Observe, partition.Enforce} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), partition.WithMode(mode))
			if err := exportOrders(r.pool(workload.Batch).DB()); err != nil {
				t.Fatal(err)
			}
			if sites := r.reg.Untagged(); len(sites) != 0 {
				t.Errorf("%s: %+v", mode, sites)
			}
		})
	}
}

func TestConnectionGivenBackForAContextHasNoSite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		ctx, cancel := within(context.Background(), time.Second)
		defer cancel()
		if _, err := r.db.BeginTx(ctx, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		sites := r.reg.Untagged()
		if len(sites) != 1 || sites[0].Site != "(given back by database/sql, when a context ended)" || sites[0].HoldTime != time.Second {
			t.Errorf("%+v", sites)
		}
		if data, err := json.Marshal(sites); err != nil || !strings.Contains(string(data), `"hold_time":"1s"`) {
			t.Errorf("%s, %v", data, err)
		}
	})
}

// Those are held for longest.
func TestUntaggedWorkWhoseConnectionIsTakenBackIsFoundToo(t *testing.T) {
	t.Parallel()
	for _, stacks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{MaxHold: time.Second, LeakStacks: stacks}))
			for range 5 {
				hoardConn(t, r.db)
				time.Sleep(time.Minute)
			}
			site := "(taken back by MaxHold or Drain"
			if stacks {
				site = "hoardConn"
			}
			sites := r.reg.Untagged()
			if len(sites) != 1 || !strings.Contains(sites[0].Site, site) || sites[0].Count != 5 || sites[0].HoldTime != 5*time.Second || (sites[0].Stack != "") != stacks {
				t.Errorf("stacks %v: %+v", stacks, sites)
			}
			if n := r.reg.Plan().Untagged; n != 5 {
				t.Errorf("stacks %v: the plan counts %d", stacks, n)
			}
		})
	}
}

// hoardConn takes a connection and does not give it back before the test ends.
func hoardConn(t *testing.T, db *sql.DB) {
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
}

func TestStackThatWasKeptIsNotThatOfABorrowerAfterLeakStacksIsOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithConfig(partition.Config{Pools: pools{workload.OLTP: {MaxOpenConns: 1, LeakStacks: true}}}))
		if err := touchOrder(r.db); err != nil {
			t.Fatal(err)
		}
		r.apply(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1})
		conn, err := r.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if stack := r.reg.Holders()[0].Stack; stack != "" {
			t.Errorf("the holder's stack is %s", stack)
		}
		time.Sleep(time.Hour)
		conn.Close()
		for _, s := range r.reg.Untagged() {
			if strings.Contains(s.Site, "touchOrder") && s.HoldTime >= time.Hour {
				t.Errorf("the hour is put down to %s", s.Site)
			}
		}
	})
}
