package conformance_test

import (
	"database/sql"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/conformance"
	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "12") // the twins wait, for cancellations above all, more than they compute
	code := testserver.Main(m)
	summary.print(os.Stdout)
	os.Exit(code)
}

// exercise runs the suite on a twin, and adds what came of it to the summary.
func exercise(t *testing.T, tw conformance.Twin) {
	t.Helper()
	summary.add(tw.Name, conformance.Exercise(t, tw))
}

// table is what the run prints: by driver, the sum of its reports.
type table struct {
	mu   sync.Mutex // guards rows
	rows map[string]conformance.Report
}

var summary table

func (s *table) add(name string, r conformance.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows = make(map[string]conformance.Report)
	}
	sum := s.rows[name]
	sum.Behaviours += r.Behaviours
	sum.Accepted += r.Accepted
	sum.Random += r.Random
	sum.Differences = append(sum.Differences, r.Differences...)
	s.rows[name] = sum
}

func (s *table) print(w io.Writer) {
	if len(s.rows) == 0 {
		return
	}
	fmt.Fprintf(w, "%-73s %10s %11s %8s %6s\n", "driver", "behaviours", "differences", "accepted", "random")
	for _, name := range slices.Sorted(maps.Keys(s.rows)) {
		r := s.rows[name]
		fmt.Fprintf(w, "%-73s %10d %11d %8d %6d\n", name, r.Behaviours, len(r.Differences), r.Accepted, r.Random)
	}
	fmt.Fprintln(w, "run with", runtime.Version()+versions())
}

// drivers are the modules whose versions are told.
var drivers = []string{
	"github.com/jackc/pgx/v5", "github.com/lib/pq", "github.com/go-sql-driver/mysql", "github.com/dolthub/go-mysql-server",
	"modernc.org/sqlite", "github.com/DATA-DOG/go-sqlmock",
}

func versions() string {
	out, err := exec.Command("go", append([]string{"list", "-m"}, drivers...)...).Output()
	if err != nil {
		return ""
	}
	return ", " + strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", ", ")
}

var quiet = partition.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// patient gives every pool this many connections, and time to dial on a busy machine.
func patient(conns int) partition.Option {
	c := partition.Config{Pools: make(map[workload.Name]partition.PoolConfig)}
	for _, name := range []workload.Name{workload.OLTP, workload.Reporting, workload.Batch, workload.Admin} {
		c.Pools[name] = partition.PoolConfig{MaxOpenConns: conns, AcquireTimeout: time.Minute, DialTimeout: time.Minute, StatementTimeout: time.Minute}
	}
	return partition.WithConfig(c)
}

func openPlain(driver, dsn string) conformance.Open {
	return func(tb testing.TB, conns int) *sql.DB {
		tb.Helper()
		db, err := sql.Open(driver, dsn)
		if err != nil {
			tb.Fatal(err)
		}
		db.SetMaxOpenConns(conns)
		return db
	}
}

func openPartitioned(driver, dsn string) conformance.Open {
	return func(tb testing.TB, conns int) *sql.DB {
		tb.Helper()
		db, err := partition.Open(driver, dsn, quiet, patient(conns))
		if err != nil {
			tb.Fatal(err)
		}
		return db
	}
}
