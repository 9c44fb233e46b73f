package libraries

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// job is a library's ordinary work, from creating its tables to dropping them, under one context.
type job func(ctx context.Context, j *journal)

// journal is where a job writes down what it saw.
type journal struct {
	testing.TB
	lines  []string // what it got, in words that do not depend on the handle
	places []string // what the expression here gave, wherever the library let it be asked
	lost   uint64   // how many statements the library sends without the caller's context: these are untagged
}

// got notes a result that must be the same on every handle.
func (j *journal) got(what string, values ...any) {
	j.lines = append(j.lines, fmt.Sprintf("%s: %+v", what, values))
}

// ran notes where a statement of the library ran.
func (j *journal) ran(here string) { j.places = append(j.places, here) }

// must ends the test at an error that no handle should give.
func (j *journal) must(err error) {
	j.Helper()
	if err != nil {
		j.Fatalf("after %d results: %v", len(j.lines), err)
	}
}

var tags = []workload.Name{workload.OLTP, workload.Reporting, workload.Batch}

// exercise has a library, opened once per handle, do its work under one tag after the other, and over again, when what it
// has prepared is there. On the partitioned handle it must get what it gets on the plain one, and nothing may run outside
// the pool of the tag.
func exercise(t *testing.T, s server, open func(tb testing.TB, db *sql.DB) job) {
	t.Helper()
	want := work(t, open(t, plain(t, s)), workload.OLTP)
	h := setup(t, s)
	home := s.homesOf(t, h)
	do := open(t, h.db)
	for _, tag := range slices.Concat(tags, tags) {
		before := h.acquired()
		j := work(t, do, tag)
		compare(t, tag, j.lines, want.lines)
		for name, n := range h.acquired() {
			if strayed := n - before[name]; name != tag && strayed != 0 && (name != workload.OLTP || strayed != j.lost) {
				t.Errorf("%s: %d statements or transactions went to %s", tag, strayed, name)
			}
		}
		if len(j.places) < 3 {
			t.Errorf("%s: asked only %d times where it runs", tag, len(j.places))
		}
		for i, here := range j.places {
			if home(here) != string(tag) {
				t.Errorf("%s: statement %d of those that say where they run ran in %q (%s)", tag, i, home(here), here)
			}
		}
	}
}

// acquired is how often each pool has lent a connection.
func (h *handle) acquired() map[workload.Name]uint64 {
	all := map[workload.Name]uint64{}
	for _, p := range h.reg.Pools() {
		all[p.Name()] = p.Stats().Acquired
	}
	return all
}

func work(tb testing.TB, do job, tag workload.Name) *journal {
	tb.Helper()
	j := &journal{TB: tb}
	do(in(tag), j)
	return j
}

func compare(t *testing.T, tag workload.Name, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d results, plain %d", tag, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s: result %d: %s\nplain: %s", tag, i, got[i], want[i])
		}
	}
}

// handle is a partitioned handle on a real server.
type handle struct {
	testing.TB
	db  *sql.DB
	reg *partition.Registry
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// setup opens a handle whose standard pools have time to dial. When the test ends every permit must be back.
func setup(tb testing.TB, s server, opts ...partition.Option) *handle {
	tb.Helper()
	patient := partition.PoolConfig{AcquireTimeout: 10 * time.Second}
	opts = append([]partition.Option{
		partition.WithLogger(quiet),
		partition.WithPool(workload.OLTP, patient),
		partition.WithPool(workload.Reporting, patient),
		partition.WithPool(workload.Batch, patient),
		partition.WithPool(workload.Admin, patient),
	}, opts...)
	db, err := partition.Open(s.driver, s.dsn(tb), opts...)
	if err != nil {
		tb.Fatal(err)
	}
	reg, ok := partition.RegistryOf(db)
	if !ok {
		tb.Fatal("no registry behind the handle")
	}
	h := &handle{tb, db, reg}
	tb.Cleanup(func() {
		h.settled()
		if err := db.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return h
}

// plain opens the same driver through database/sql alone.
func plain(tb testing.TB, s server) *sql.DB {
	tb.Helper()
	db, err := sql.Open(s.driver, s.dsn(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return db
}

// settled fails the test unless every permit comes back.
func (h *handle) settled() {
	h.Helper()
	for _, p := range h.reg.Pools() {
		eventually(h, func() string {
			if s := p.Stats(); s.InUse != 0 || s.Waiting != 0 {
				return fmt.Sprintf("pool %s: in use %d, waiting %d", p.Name(), s.InUse, s.Waiting)
			}
			return ""
		})
	}
}

func (h *handle) pool(name workload.Name) *partition.Pool {
	h.Helper()
	p, ok := h.reg.Pool(name)
	if !ok {
		h.Fatalf("no pool %q", name)
	}
	return p
}

// in is a context tagged with a workload.
func in(name workload.Name) context.Context { return workload.With(context.Background(), name) }

// patience is what a busy machine under the race detector may take for what is quick.
const patience = 20 * time.Second

// eventually waits until wrong returns nothing, and fails with what it last returned if that takes too long.
func eventually(tb testing.TB, wrong func() string) {
	tb.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		what := wrong()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			tb.Errorf("after %v: %s", patience, what)
			return
		}
	}
}
