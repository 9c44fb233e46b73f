package debugpage_test

import (
	"encoding/json"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/debugpage"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

type history struct {
	Every      float64 `json:"every_seconds"`
	InUse      []int   `json:"in_use"`
	Waiting    []int
	Rejections []float64 `json:"rejections_per_second"`
}

// oltpHistory is the oltp pool's, as the page has it.
func oltpHistory(t *testing.T, page http.Handler) history {
	t.Helper()
	_, body := ask(t, page, "GET", "/?format=json")
	var v struct {
		Pools []struct {
			Name    workload.Name
			History history
		}
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	for _, p := range v.Pools {
		if p.Name == workload.OLTP {
			return p.History
		}
	}
	t.Fatal("no pool oltp")
	return history{}
}

func count[T comparable](s []T, v T) (n int) {
	for _, x := range s {
		if x == v {
			n++
		}
	}
	return n
}

func TestPageShowsTheMinutesBeforeItWasOpened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, reg := setup(t, partition.WithPool(workload.OLTP, partition.PoolConfig{
			MaxOpenConns: 2, MaxWaiting: 1, AcquireTimeout: time.Minute, StatementTimeout: partition.NoTimeout}))
		page := debugpage.Handler(reg)
		time.Sleep(time.Second) // so that nothing below happens as a sample is taken
		for range 3 {           // two of them work for 20 s, then the third
			go db.ExecContext(oltp, "sleep 20s")
		}
		synctest.Wait()
		for range 5 {
			db.ExecContext(oltp, "ok") // the queue is full
		}
		time.Sleep(time.Minute)
		h := oltpHistory(t, page)
		if len(h.InUse) != 30 || h.Every != 2 {
			t.Fatalf("after 61 s: %+v", h)
		}
		if count(h.InUse, 2) != 10 || count(h.InUse, 1) != 10 || h.InUse[0] != 2 {
			t.Errorf("in use: %v", h.InUse)
		}
		if count(h.Waiting, 1) != 10 || count(h.Waiting, 0) != 20 {
			t.Errorf("waiting: %v", h.Waiting)
		}
		if h.Rejections[0] != 2.5 || count(h.Rejections, 0) != 29 {
			t.Errorf("rejections a second: %v", h.Rejections)
		}
		if _, body := ask(t, page, "GET", "/"); !strings.Contains(body, "rejections/s: at most 2.5 in") {
			t.Errorf("the page does not say so: %s", body)
		}
	})
}

func TestHistoryKeepsFiveMinutesTheYoungestLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, reg := setup(t)
		page := debugpage.Handler(reg)
		time.Sleep(time.Hour + time.Second)
		conn, err := db.Conn(oltp)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		time.Sleep(10 * time.Second)
		if h := oltpHistory(t, page); len(h.InUse) != 150 || !slices.Equal(h.InUse[144:], []int{0, 1, 1, 1, 1, 1}) {
			t.Errorf("%d samples: %v", len(h.InUse), h.InUse)
		}
	})
}

func TestNothingIsSampledOnceTheRegistryIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, reg := setup(t)
		page := debugpage.Handler(reg)
		time.Sleep(11 * time.Second)
		db.Close()
		time.Sleep(time.Minute)
		if h := oltpHistory(t, page); len(h.InUse) != 5 {
			t.Errorf("%d samples, want the 5 from before", len(h.InUse))
		}
	})
}

// Not parallel: it measures the heap of the process.
func TestNothingGrowsWithUptimeOrWithRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, reg := setup(t, partition.WithoutPool(workload.Reporting), partition.WithoutPool(workload.Batch), partition.WithoutPool(workload.Admin))
		page := debugpage.Handler(reg)
		live := func(requests int) uint64 {
			for i := range requests {
				time.Sleep(2 * time.Second)
				ask(t, page, "GET", []string{"/", "/?format=json"}[i%2])
			}
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := live(300)
		if after := live(10_000); after > before+100_000 {
			t.Errorf("10000 samples and 10000 requests: the heap grew from %d to %d bytes", before, after)
		}
	})
}
