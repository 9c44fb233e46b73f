package debugpage

import (
	"log/slog"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

func open(t testing.TB) *partition.Registry {
	t.Helper()
	db, err := partition.OpenDB(fakedb.Null(), partition.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	reg, _ := partition.RegistryOf(db)
	return reg
}

// Not parallel: testing.AllocsPerRun counts those of the process.
func TestSampleAllocatesNothing(t *testing.T) {
	h := newHistory(open(t))
	if n := testing.AllocsPerRun(1000, func() { h.take(time.Now()) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A program that makes a handler for each request would otherwise sample more and more often.
func TestHistoryThatNobodyHasIsNotSampled(t *testing.T) {
	t.Parallel()
	reg := open(t)
	w := weak.Make(newHistory(reg))
	runtime.GC()
	if w.Value() != nil {
		t.Error("something has the history")
	}
	runtime.KeepAlive(reg)
}

func BenchmarkSample(b *testing.B) {
	h := newHistory(open(b))
	b.ReportAllocs()
	for b.Loop() {
		h.take(time.Now())
	}
}
