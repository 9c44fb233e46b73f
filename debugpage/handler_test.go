package debugpage_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/debugpage"
	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

var oltp = workload.With(context.Background(), workload.OLTP)

func setup(t *testing.T, opts ...partition.Option) (*sql.DB, *partition.Registry) {
	t.Helper()
	opts = append([]partition.Option{partition.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	db, err := partition.OpenDB(fakedb.New().Connector(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	reg, _ := partition.RegistryOf(db)
	return db, reg
}

func get(t *testing.T, reg *partition.Registry, method, target string) (*http.Response, string) {
	t.Helper()
	return ask(t, debugpage.Handler(reg), method, target)
}

func ask(t *testing.T, page http.Handler, method, target string) (*http.Response, string) {
	t.Helper()
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(body)
}

// shown is what the test reads of the JSON.
type shown struct {
	Name     workload.Name
	InUse    int `json:"in_use"`
	Idle     int
	Free     int
	Waiting  int
	Acquired uint64
	Full     uint64 `json:"rejected_queue_full"`
	TimedOut uint64 `json:"rejected_acquire_timeout"`
	Exceeded uint64 `json:"statement_timeouts"`
	Unknown  uint64 `json:"ended_unknown"`
	Leaked   uint64
	HoldMean float64 `json:"hold_mean_seconds"`
	Settings partition.PoolConfig
	Holders  []struct {
		Tag      workload.Name
		Age      float64 `json:"age_seconds"`
		Activity string
	}
}

func TestPageHasTheNumbersOfTheRegistryUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, reg := setup(t, partition.WithPool(workload.OLTP, partition.PoolConfig{
			MaxOpenConns: 3, MaxWaiting: 2, AcquireTimeout: 100 * time.Millisecond, StatementTimeout: 50 * time.Millisecond,
			LeakAfter: 35 * time.Millisecond}))
		for i := range 40 {
			go db.ExecContext(oltp, []string{"sleep 30ms", "hang"}[i%2])
			if i%4 == 3 {
				time.Sleep(20 * time.Millisecond)
				synctest.Wait()
				compare(t, reg)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		compare(t, reg)
		p, _ := reg.Pool(workload.OLTP)
		if s := p.Stats(); s.RejectedQueueFull == 0 || s.StatementTimeouts == 0 || s.EndedUnknown == 0 || s.Leaked == 0 {
			t.Errorf("that was no load: %+v", s)
		}
	})
}

func compare(t *testing.T, reg *partition.Registry) {
	t.Helper()
	_, body := get(t, reg, "GET", "/?format=json")
	var v struct{ Pools []shown }
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Pools) != len(reg.Pools()) {
		t.Fatalf("%d pools", len(v.Pools))
	}
	holders := make(map[workload.Name]int)
	for _, h := range reg.Holders() {
		holders[h.Pool]++
	}
	for i, p := range reg.Pools() {
		s, got := p.Stats(), v.Pools[i]
		if got.Name != s.Workload || got.InUse != s.InUse || got.Idle != s.Idle || got.Waiting != s.Waiting ||
			got.Free != s.MaxOpenConns-s.InUse-s.Idle || got.Acquired != s.Acquired || got.Full != s.RejectedQueueFull ||
			got.Exceeded != s.StatementTimeouts || got.Unknown != s.EndedUnknown || got.Leaked != s.Leaked ||
			got.TimedOut != s.RejectedTimeout || got.HoldMean != s.HoldMean.Seconds() || len(got.Holders) != holders[p.Name()] {
			t.Errorf("shown %+v, is %+v", got, s)
		}
	}
}

func TestPageHasTheQuantilesAndThePlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, reg := setup(t, partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1}))
		for range 2 {
			go db.ExecContext(oltp, "sleep 50ms")
		}
		time.Sleep(time.Second)
		_, body := get(t, reg, "GET", "/?format=json")
		var v struct {
			Plan struct {
				Pools []struct{ Workload workload.Name }
			}
			Pools []struct {
				Name    workload.Name
				WaitP99 float64 `json:"wait_p99_seconds"`
				HoldP50 float64 `json:"hold_p50_seconds"`
			}
		}
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		p, _ := reg.Pool(workload.OLTP)
		for _, shown := range v.Pools {
			if want := p.Times(); shown.Name == workload.OLTP && (shown.WaitP99 != want.WaitP99.Seconds() || shown.HoldP50 != want.HoldP50.Seconds() || want.HoldP50 == 0) {
				t.Errorf("shown %+v, is %+v", shown, want)
			}
		}
		if len(v.Plan.Pools) != len(v.Pools) {
			t.Errorf("plan: %+v", v.Plan)
		}
		if _, body := get(t, reg, "GET", "/"); !strings.Contains(body, html.EscapeString(reg.Plan().String())) {
			t.Errorf("the plan is not on the page: %s", body)
		}
	})
}

func TestPageSaysWhoEnforcesTheStatementTimeout(t *testing.T) {
	t.Parallel()
	for mode, want := range map[partition.Mode]struct{ before, after string }{
		partition.Enforce: {"not known before the first connection", string(stmttimeout.EnforcedByClient)},
		partition.Observe: {"nobody, since the mode is observe", "nobody, since the mode is observe"},
	} {
		db, reg := setup(t, partition.WithMode(mode))
		says := func(want string) {
			t.Helper()
			_, body := get(t, reg, "GET", "/")
			_, body, _ = strings.Cut(body, "<h2>oltp</h2>")
			if _, by, _ := strings.Cut(body, "Statement timeout enforced by: "); !strings.HasPrefix(by, want+". ") {
				t.Errorf("mode %s: not %q but %.60q", mode, want, by)
			}
		}
		says(want.before)
		if _, err := db.ExecContext(oltp, "ok"); err != nil {
			t.Fatal(err)
		}
		says(want.after)
	}
}

func TestHoldersStandWithAgeAndActivity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, reg := setup(t)
		tx, err := db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		time.Sleep(3 * time.Second)
		_, body := get(t, reg, "GET", "/")
		if want := "<td>3s</td><td>oltp</td><td>idle in transaction</td>"; !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	})
}

func TestHostileNamesAreText(t *testing.T) {
	t.Parallel()
	const hostile = `<script>alert(1)</script>"'`
	db, reg := setup(t, partition.WithName(hostile), partition.WithFallback(workload.OLTP))
	conn, err := db.Conn(workload.With(context.Background(), hostile))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, body := get(t, reg, "GET", "/")
	if strings.Contains(body, "<script") || strings.Count(body, "&lt;script&gt;") != 3 { // title, headline and the holder's tag
		t.Error(body)
	}
}

func TestPageHasNoDataSourceOnIt(t *testing.T) {
	t.Parallel()
	_, reg := setup(t, partition.WithPool(workload.Reporting, partition.PoolConfig{DSN: "postgres://app:hunter2@replica.example/orders"}))
	if p, _ := reg.Pool(workload.Reporting); !strings.Contains(p.Config().DSN, "replica") {
		t.Fatalf("the pool has no data source of its own: %s", p.Config())
	}
	for _, target := range []string{"/", "/?format=json"} {
		if _, body := get(t, reg, "GET", target); strings.Contains(body, "hunter2") || strings.Contains(body, "replica") {
			t.Errorf("%s: %s", target, body)
		}
	}
}

func TestPageReloadsItselfUnlessToldNotTo(t *testing.T) {
	t.Parallel()
	_, reg := setup(t)
	for target, want := range map[string]bool{"/": true, "/?refresh=off": false} {
		if _, body := get(t, reg, "GET", target); strings.Contains(body, `http-equiv="refresh"`) != want {
			t.Errorf("%s: %s", target, body)
		}
	}
}

func TestPageIsReadAndNotWritten(t *testing.T) {
	t.Parallel()
	_, reg := setup(t)
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if res, _ := get(t, reg, method, "/"); res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") == "" {
			t.Errorf("%s: %d", method, res.StatusCode)
		}
	}
	if res, _ := get(t, reg, "GET", "/"); !strings.HasPrefix(res.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Error("no policy against scripts")
	}
}
