package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(testserver.Main(m))
}

// rig is a service and its pools.
type rig struct {
	*testing.T
	*service
	db     *sql.DB
	routes http.Handler
}

// setup starts a service on a SQLite file. Its pools have time to dial, and reports that find theirs full are refused
// at once: no test waits for a timeout.
func setup(t *testing.T, opts ...partition.Option) *rig {
	t.Helper()
	return setupOn(t, "sqlite", sqliteFile(filepath.Join(t.TempDir(), "shop")), opts...)
}

func setupOn(t *testing.T, driver, dsn string, opts ...partition.Option) *rig {
	t.Helper()
	patient := partition.PoolConfig{AcquireTimeout: 20 * time.Second, MaxWaiting: partition.NoQueue}
	db, err := openPools(driver, dsn, append([]partition.Option{
		partition.WithLogger(slog.New(slog.DiscardHandler)),
		partition.WithPool(workload.OLTP, patient), partition.WithPool(workload.Reporting, patient),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := prepare(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	s := newService(db)
	s.logins.retries.sleep, s.reports.retries.sleep = noSleep, noSleep
	return &rig{t, s, db, s.routes()}
}

func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func (r *rig) stats(name workload.Name) partition.Stats {
	r.Helper()
	reg, _ := partition.RegistryOf(r.db)
	pool, ok := reg.Pool(name)
	if !ok {
		r.Fatalf("no pool %q", name)
	}
	return pool.Stats()
}

// fillReports takes every connection that reports may have.
func (r *rig) fillReports() (giveBack func()) {
	r.Helper()
	ctx := workload.With(r.Context(), workload.Reporting)
	var conns []*sql.Conn
	for range r.stats(workload.Reporting).MaxOpenConns {
		conn, err := r.db.Conn(ctx)
		if err != nil {
			r.Fatal(err)
		}
		conns = append(conns, conn)
	}
	giveBack = func() {
		for _, conn := range conns {
			conn.Close()
		}
	}
	r.Cleanup(giveBack)
	return giveBack
}

func (r *rig) send(method, path, body string) *httptest.ResponseRecorder {
	r.Helper()
	req := httptest.NewRequestWithContext(r.Context(), method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	r.routes.ServeHTTP(w, req)
	return w
}

func (r *rig) pause(name workload.Name) {
	r.Helper()
	reg, _ := partition.RegistryOf(r.db)
	pool, ok := reg.Pool(name)
	if !ok {
		r.Fatalf("no pool %q", name)
	}
	pool.Pause()
}

// mustLogin checks that a user is let in.
func (r *rig) mustLogin() {
	r.Helper()
	if w := r.send("POST", "/login", "user=ada"); w.Code != http.StatusOK {
		r.Errorf("login: %d %s", w.Code, w.Body)
	}
}

// getReport sends a request for the report, and reads the answer if its status is 200.
func (r *rig) getReport() (*httptest.ResponseRecorder, reportReply) {
	r.Helper()
	w := r.send("GET", "/report", "")
	var got reportReply
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			r.Fatal(err)
		}
	}
	return w, got
}

// mustReport checks the report and whether it is stale.
func (r *rig) mustReport(stale bool) reportReply {
	r.Helper()
	w, got := r.getReport()
	if w.Code != http.StatusOK || got.Stale != stale || len(got.Lines) != 2 || got.Lines[1] != (line{"grace", 3000}) {
		r.Errorf("report: %d %s", w.Code, w.Body)
	}
	return got
}

// mustBeUnavailable checks that the report is refused, and that the client is told when to come back.
func (r *rig) mustBeUnavailable() {
	r.Helper()
	w, _ := r.getReport()
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") < "1" {
		r.Errorf("report: %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
}
