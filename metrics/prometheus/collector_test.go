package prometheus_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestSaturatedPoolShowsWhoHoldsWhoWaitsAndWhoWasRejected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, MaxWaiting: 1, AcquireTimeout: 100 * ms}))
		conn, err := r.db.Conn(oltp)
		if err != nil {
			t.Fatal(err)
		}
		go r.db.ExecContext(oltp, "ok") // waits until it times out
		synctest.Wait()
		r.db.ExecContext(oltp, "ok") // the queue is full
		time.Sleep(50 * ms)
		r.want(map[string]float64{
			"go_sql_max_open_connections":             1,
			"go_sql_open_connections":                 1,
			"go_sql_in_use_connections":               1,
			"go_sql_idle_connections":                 0,
			"go_sql_wait_count_total":                 1,
			"sqlbulkhead_queue_depth":                 1,
			"sqlbulkhead_queue_limit":                 1,
			"sqlbulkhead_peak_in_use_connections":     1,
			"sqlbulkhead_acquire_timeout_seconds":     0.1,
			"sqlbulkhead_saturated_seconds_total":     0.05,
			"sqlbulkhead_rejections_total/queue_full": 1,
		})
		time.Sleep(50 * ms)
		synctest.Wait()
		conn.Close()
		r.want(map[string]float64{
			"go_sql_in_use_connections":                    0,
			"go_sql_idle_connections":                      1,
			"go_sql_wait_duration_seconds_total":           0.1,
			"sqlbulkhead_queue_depth":                      0,
			"sqlbulkhead_acquires_total":                   1,
			"sqlbulkhead_saturated_seconds_total":          0.1,
			"sqlbulkhead_rejections_total/acquire_timeout": 1,
			"sqlbulkhead_wait_seconds_count":               1,
			"sqlbulkhead_hold_seconds_count":               1,
			"sqlbulkhead_hold_seconds_sum":                 0.1,
		})
	})
}

func TestWaitOfTheServedIsCountedAndThatOfTheRefusedIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, AcquireTimeout: 100 * ms}))
		go r.mustExec(oltp, "sleep 80ms")
		synctest.Wait()
		go r.mustExec(oltp, "sleep 90ms") // waits for 80 ms
		synctest.Wait()
		r.db.ExecContext(oltp, "ok") // for 100 ms, and is rejected
		ctx, cancel := context.WithTimeout(oltp, 20*ms)
		defer cancel()
		r.db.ExecContext(ctx, "ok")
		time.Sleep(time.Second)
		r.want(map[string]float64{
			"sqlbulkhead_wait_seconds_count":               2,
			"sqlbulkhead_wait_seconds_sum":                 0.08,
			"sqlbulkhead_hold_seconds_count":               2,
			"sqlbulkhead_hold_seconds_sum":                 0.17,
			"sqlbulkhead_rejections_total/acquire_timeout": 1,
			"sqlbulkhead_callers_gave_up_total":            1,
		})
	})
}

func TestPauseIsShownAndItsRejectionsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		p, _ := r.reg.Pool(workload.OLTP)
		p.Pause()
		r.db.ExecContext(oltp, "ok")
		r.want(map[string]float64{"sqlbulkhead_paused": 1, "sqlbulkhead_rejections_total/paused": 1})
		p.Resume()
		r.want(map[string]float64{"sqlbulkhead_paused": 0})
	})
}

func TestConnectionsAreCountedFromDialToClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, pool(workload.OLTP, partition.PoolConfig{AcquireTimeout: time.Second, StatementTimeout: 10 * ms, MaxIdleConns: 1}))
		r.server.On(fakedb.Dial, fakedb.Delay(20*ms))
		r.mustExec(oltp, "ok")
		r.db.ExecContext(oltp, "hang") // the guard ends it, and its connection with it
		time.Sleep(time.Minute)
		r.server.On(fakedb.Dial, fakedb.Fail(sql.ErrConnDone))
		r.db.ExecContext(oltp, "ok")
		r.server.On(fakedb.Dial, nil)
		for range 2 { // at once; only one of them is kept
			go r.mustExec(oltp, "sleep 5ms")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want(map[string]float64{
			"sqlbulkhead_statement_timeouts_total":         1,
			"sqlbulkhead_dial_failures_total":              1,
			"sqlbulkhead_connections_opened_total":         3,
			"sqlbulkhead_dial_seconds_count":               3,
			"sqlbulkhead_dial_seconds_sum":                 0.02,
			"sqlbulkhead_connections_closed_total/bad":     1,
			"sqlbulkhead_connections_closed_total/surplus": 1,
			"sqlbulkhead_connections_closed_total/expired": 0,
			"go_sql_max_idle_closed_total":                 1,
			"go_sql_open_connections":                      1,
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		r.want(map[string]float64{"sqlbulkhead_connections_closed_total/expired": 1, "go_sql_max_lifetime_closed_total": 1})
	})
}

func TestStatementCutShortIsEndingUntilItsConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, pool(workload.OLTP, partition.PoolConfig{StatementTimeout: 10 * ms}))
		r.server.On(fakedb.CloseConn, fakedb.Delay(time.Second))
		r.db.ExecContext(oltp, "hang")
		synctest.Wait()
		r.want(map[string]float64{
			"sqlbulkhead_statements_ending":              1,
			"sqlbulkhead_statements_ended_total/unknown": 0,
			"go_sql_in_use_connections":                  1,
		})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.want(map[string]float64{
			"sqlbulkhead_statements_ending":                0,
			"sqlbulkhead_statements_ended_total/confirmed": 0,
			"sqlbulkhead_statements_ended_total/forced":    0,
			"sqlbulkhead_statements_ended_total/unknown":   1,
			"sqlbulkhead_end_problem":                      0,
			"go_sql_in_use_connections":                    0,
		})
	})
}

func TestConnectionHeldForTooLongIsCountedAsALeakAndWhenTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, pool(workload.OLTP, partition.PoolConfig{LeakAfter: time.Second, MaxHold: time.Minute}))
		conn, err := r.db.Conn(oltp)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		time.Sleep(30 * time.Second)
		r.want(map[string]float64{"sqlbulkhead_leaks_total": 1, "sqlbulkhead_reclaims_total": 0})
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want(map[string]float64{
			"sqlbulkhead_leaks_total":                        1,
			"sqlbulkhead_reclaims_total":                     1,
			"sqlbulkhead_connections_closed_total/reclaimed": 1,
		})
	})
}

func TestPoolThatNeverQueuesHasNoAcquireTimeout(t *testing.T) {
	t.Parallel()
	r := setup(t, pool(workload.OLTP, partition.PoolConfig{AcquireTimeout: partition.NoWait}))
	if f := gather(t, r.gatherer)["sqlbulkhead_acquire_timeout_seconds"]; len(f.GetMetric()) != 3 {
		t.Errorf("%d pools have one, want the 3 others", len(f.GetMetric()))
	}
}

// The twin is what a dashboard was made for.
func TestNamesHelpTextsAndTypesAreThoseOfClientGolang(t *testing.T) {
	t.Parallel()
	twin := prom.NewRegistry()
	twin.MustRegister(collectors.NewDBStatsCollector(sql.OpenDB(fakedb.Null()), "orders"))
	ours := gather(t, setup(t).gatherer)
	expected := gather(t, twin)
	for name, want := range expected {
		got := ours[name]
		if got.GetHelp() != want.GetHelp() || got.GetType() != want.GetType() {
			t.Errorf("%s: got %q %v, want %q %v", name, got.GetHelp(), got.GetType(), want.GetHelp(), want.GetType())
		}
		if len(got.GetMetric()) != 4 {
			t.Errorf("%s: %d series, want one for each of 4 pools", name, len(got.GetMetric()))
		}
	}
	for name := range ours {
		if _, known := expected[name]; !known && !strings.HasPrefix(name, "sqlbulkhead_") {
			t.Errorf("%s is neither client_golang's nor ours", name)
		}
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	t.Parallel()
	var list []*dto.MetricFamily
	for _, f := range gather(t, setup(t).gatherer) {
		list = append(list, f)
	}
	problems, err := promlint.NewWithMetricFamilies(list).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestPlainHandleIsCollectedBesideThePools(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"plain", "pools"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			registry, r := prom.NewRegistry(), setup(t)
			beside := prom.WrapRegistererWith(prom.Labels{"pool": ""}, registry)
			plain := collectors.NewDBStatsCollector(sql.OpenDB(fakedb.Null()), "legacy")
			if first == "plain" {
				beside.MustRegister(plain)
			}
			registry.MustRegister(prometheus.NewCollector(r.reg, nil))
			if first == "pools" {
				beside.MustRegister(plain)
			}
			if n := len(gather(t, registry)["go_sql_open_connections"].GetMetric()); n != 5 {
				t.Errorf("%d series, want one of the plain handle and one for each of 4 pools", n)
			}
		})
	}
}

func TestRegistriesAreToldApartByTheirNames(t *testing.T) {
	t.Parallel()
	registry := prom.NewRegistry()
	for _, name := range []string{"", "orders"} {
		if err := registry.Register(prometheus.NewCollector(setup(t, partition.WithName(name)).reg, nil)); err != nil {
			t.Fatal(err)
		}
	}
	flat := flatten(gather(t, registry))
	for _, name := range []string{"default", "orders"} {
		if _, ok := flat[`go_sql_open_connections{db_name="`+name+`",pool="oltp"}`]; !ok {
			t.Errorf("no series of %s", name)
		}
	}
	if err := registry.Register(prometheus.NewCollector(setup(t, partition.WithName("")).reg, nil)); err == nil {
		t.Error("a second registry without a name was taken")
	}
}
