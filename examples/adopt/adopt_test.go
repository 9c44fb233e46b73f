package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// rig is the service at work.
type rig struct {
	*testing.T
	*shop
	url string
}

func setup(t *testing.T, dsn, config string) *rig {
	t.Helper()
	s, err := open("sqlite", dsn, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.db.Close() })
	server := httptest.NewServer(s.routes())
	t.Cleanup(server.Close)
	return &rig{t, s, server.URL}
}

// get returns the status, its Retry-After and the text of an answer.
func (r *rig) get(path string) (status int, retry, text string) {
	r.Helper()
	return r.answer(http.Get(r.url + path))
}

func (r *rig) answer(response *http.Response, err error) (status int, retry, text string) {
	r.Helper()
	if err != nil {
		r.Error(err)
		return 0, "", ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.Error(err)
	}
	return response.StatusCode, response.Header.Get("Retry-After"), string(body)
}

// traffic is what became of some requests.
type traffic struct{ logins, missed, reports, refused atomic.Int64 }

// rush has far more people ask for reports than there are connections, and one export now and then, while others log in.
func (r *rig) rush(d time.Duration) *traffic {
	ctx, stop := context.WithTimeout(r.Context(), d)
	defer stop()
	var seen traffic
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			for ctx.Err() == nil {
				switch status, retry, _ := r.get("/report"); {
				case status == http.StatusOK:
					seen.reports.Add(1)
				case status == http.StatusServiceUnavailable && retry != "":
					seen.refused.Add(1)
					time.Sleep(20 * time.Millisecond) // much sooner than it was told
				default:
					r.Errorf("report: %d", status)
				}
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			r.get("/export")
		}
	})
	for ctx.Err() == nil {
		began := time.Now()
		status, _, text := r.answer(http.PostForm(r.url+"/login", map[string][]string{"user": {"ada"}}))
		if status != http.StatusOK || !strings.HasPrefix(text, "welcome ada") {
			r.Errorf("login: %d %s", status, text)
		}
		seen.logins.Add(1)
		if time.Since(began) > 100*time.Millisecond {
			seen.missed.Add(1)
		}
		time.Sleep(10 * time.Millisecond)
	}
	all.Wait()
	return &seen
}

// The steps of docs/adopt.md, one after the other.
func TestServiceIsAdoptedStepByStep(t *testing.T) {
	dir := t.TempDir()
	dsn := filepath.Join(dir, "shop.sqlite")

	r := setup(t, dsn, "")
	watched := r.rush(3 * time.Second)
	if watched.refused.Load() > 0 || watched.reports.Load() == 0 {
		t.Errorf("observed: %d reports, %d refused", watched.reports.Load(), watched.refused.Load())
	}
	if watched.missed.Load() == 0 {
		t.Errorf("in the one pool none of %d logins took more than 100 ms: there was no rush", watched.logins.Load())
	}
	if _, _, sites := r.get("/untagged"); !strings.Contains(sites, "(*shop).lines") {
		t.Errorf("the export's connections came from:\n%s", sites)
	} else {
		t.Log("\n" + sites)
	}
	_, _, plan := r.get("/plan")
	t.Log("\n" + plan)
	for _, name := range []string{"oltp", "reporting"} {
		if !strings.Contains(plan, name) {
			t.Errorf("the plan says nothing of %s", name)
		}
	}
	_, _, config := r.get("/plan/config")
	file := filepath.Join(dir, "pools.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + config)

	t.Setenv("DB_OLTP_ACQUIRE_TIMEOUT", "20s") // a busy machine may be slow to dial
	t.Setenv("DB_OLTP_MAX_WAITING", "100")
	r = setup(t, dsn, file)
	if m := r.reg.Mode(); m != partition.Enforce {
		t.Errorf("with the plan's configuration the mode is %q", m)
	}
	enforced := r.rush(3 * time.Second)
	if enforced.refused.Load() == 0 || enforced.reports.Load() == 0 {
		t.Errorf("enforced: %d reports, %d refused", enforced.reports.Load(), enforced.refused.Load())
	}
	t.Logf("logins over 100 ms: %d of %d observed, %d of %d enforced",
		watched.missed.Load(), watched.logins.Load(), enforced.missed.Load(), enforced.logins.Load())
	if enforced.missed.Load()*watched.logins.Load()*2 > watched.missed.Load()*enforced.logins.Load() {
		t.Error("enforcing the plan did not help the logins")
	}

	r.scraped(dir)
	r.looked()
}

func TestEnvironmentHasTheLastWordOnTheMode(t *testing.T) {
	t.Setenv("DB_MODE", "enforce")
	if m := setup(t, filepath.Join(t.TempDir(), "shop.sqlite"), "").reg.Mode(); m != partition.Enforce {
		t.Errorf("the mode is %q", m)
	}
	t.Setenv("DB_MODE", "shadow")
	if _, err := open("sqlite", "unused", ""); err == nil || !strings.Contains(err.Error(), "DB_MODE") {
		t.Errorf("got %v", err)
	}
}

// looked opens the live page.
func (r *rig) looked() {
	r.Helper()
	_, _, page := r.get("/debug/bulkhead/")
	_, _, numbers := r.get("/debug/bulkhead/?format=json")
	for _, want := range []string{"oltp", "reporting"} {
		if !strings.Contains(page, want) || !strings.Contains(numbers, fmt.Sprintf("%q", want)) {
			r.Errorf("the page or its numbers lack the pool %s", want)
		}
	}
}
