package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/sqlbulkhead/sqlbulkhead/examples/internal/scratch"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// databases are what the service runs on, each with a report that takes for ever there.
var databases = map[string]struct {
	dsn  func(t *testing.T) string
	slow string
}{
	"sqlite": {
		func(t *testing.T) string { return sqliteFile(filepath.Join(t.TempDir(), "shop")) },
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT 'x', count(*) FROM c",
	},
	"pgx": {
		func(t *testing.T) string { return scratch.Postgres(t) },
		"SELECT 'x', 1 FROM pg_sleep(60)",
	},
}

func TestServiceAnswersOnBothDatabases(t *testing.T) {
	t.Parallel()
	for driver, d := range databases {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			r := setupOn(t, driver, d.dsn(t))
			r.mustLogin()
			r.mustReport(false)
			if w := r.send("POST", "/login", "user=mallory"); w.Code != http.StatusUnauthorized {
				t.Errorf("a stranger got %d", w.Code)
			}
			if w := r.send("GET", "/ready", ""); w.Code != http.StatusOK {
				t.Errorf("ready: %d", w.Code)
			}
		})
	}
}

func TestLoginsAreServedWhileReportsFillTheirPool(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.fillReports()
	for range 20 {
		r.mustLogin()
		r.mustBeUnavailable()
	}
	if w := r.send("GET", "/ready", ""); w.Code != http.StatusOK {
		t.Errorf("a full pool made the service unready: %d", w.Code)
	}
}

func TestRejectionsDoNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	r := setup(t)
	giveBack := r.fillReports()
	for range 10 * tripAfter {
		r.mustBeUnavailable()
	}
	counts := r.reports.breaker.Counts()
	if state := r.reports.breaker.State(); state != gobreaker.StateClosed || counts.TotalFailures != 0 {
		t.Errorf("the breaker is %v: %+v", state, counts)
	}
	giveBack()
	r.mustReport(false)
}

func TestFailuresOfTheDatabaseOpenTheBreakerOfTheirWorkloadAlone(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.store.report = "SELECT buyer, cents FROM no_such_table"
	for range tripAfter {
		if w, _ := r.getReport(); w.Code != http.StatusInternalServerError {
			t.Fatalf("status %d", w.Code)
		}
	}
	before := r.stats(workload.Reporting).Acquired
	r.mustBeUnavailable()
	if asked := r.stats(workload.Reporting).Acquired - before; asked != 0 {
		t.Errorf("the database was asked %d times behind an open breaker", asked)
	}
	r.mustLogin()
}

func TestStatementTimeoutEndsAReportOnceAndCountsAsFailure(t *testing.T) {
	t.Parallel()
	for driver, d := range databases {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			r := setupOn(t, driver, d.dsn(t),
				partition.WithPool(workload.Reporting, partition.PoolConfig{StatementTimeout: 50 * time.Millisecond}))
			r.store.report = d.slow
			if w, _ := r.getReport(); w.Code != http.StatusGatewayTimeout {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			if n := r.stats(workload.Reporting).StatementTimeouts; n != 1 {
				t.Errorf("%d statement timeouts", n)
			}
			if n := r.reports.breaker.Counts().TotalFailures; n != 1 {
				t.Errorf("%d failures", n)
			}
		})
	}
}

func TestServiceStopsInGoodOrder(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- run(ctx, "sqlite", "", addr) }()
	awaitReady(t, "http://"+addr+"/ready", done)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func awaitReady(t *testing.T, url string, done <-chan error) {
	t.Helper()
	for {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			return
		}
		select {
		case err := <-done:
			t.Fatalf("the service ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
