package testserver

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// requireVariable, set to 1, makes a missing PostgreSQL, MariaDB, PgBouncer or program a
// failure instead of a skip.
const requireVariable = "SQLBULKHEAD_REQUIRE_SERVERS"

// family is one kind of server, and what this process knows of it.
type family struct {
	name     string // as people write it
	variable string // holds the DSN of a server that is already there; "" if none may be given
	binaries string // variable that names the directory of its binaries, "" if there is none
	debian   string // the package that brings one, "" if there is none
	optional bool   // never required
	find     func() (engine, bool)

	// mu guards shared and err, and is held while the shared server starts,
	// so that the tests that want it wait. It is taken before the other
	// locks of this package.
	mu     sync.Mutex
	shared *Server // of this process; nil until the first test wants it
	err    error   // why the shared server did not start

	source atomic.Value // string: where servers came from, for Summary
}

var (
	postgresFamily = &family{
		name:     "PostgreSQL",
		variable: "SQLBULKHEAD_POSTGRES_DSN",
		binaries: binVariable,
		debian:   "postgresql",
		find:     findPostgres,
	}
	mariadbFamily = &family{
		name:     "MariaDB",
		variable: "SQLBULKHEAD_MARIADB_DSN",
		debian:   "mariadb-server",
		find:     findMariaDB,
	}
	mysqlFamily = &family{
		name:     "MySQL",
		variable: "SQLBULKHEAD_MYSQL_DSN",
		optional: true,
		find:     func() (engine, bool) { return nil, false },
	}
	pgbouncerFamily = &family{
		name:   "PgBouncer",
		debian: "pgbouncer",
		find:   findPgBouncer,
	}
	families = []*family{postgresFamily, mariadbFamily, mysqlFamily, pgbouncerFamily}
)

// Postgres returns the DSN of a PostgreSQL server as a URL, which pgx and
// lib/pq both read. A private server gives a superuser, no TLS and 200
// connections. All tests of a process share the server: create what you need
// under a name of your own.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return postgresFamily.dsn(tb)
}

// MariaDB returns the DSN of a MariaDB server in the form of
// go-sql-driver/mysql. A private server gives a user with every privilege and
// 300 connections. All tests of a process share the server.
func MariaDB(tb testing.TB) string {
	tb.Helper()
	return mariadbFamily.dsn(tb)
}

// MySQL returns the DSN of a MySQL server in the form of go-sql-driver/mysql.
// It comes from the environment alone and is never required.
func MySQL(tb testing.TB) string {
	tb.Helper()
	return mysqlFamily.dsn(tb)
}

// StartPostgres starts a PostgreSQL server for this test alone and removes it
// when the test is over.
func StartPostgres(tb testing.TB) *Server {
	tb.Helper()
	return postgresFamily.start(tb)
}

// StartMariaDB starts a MariaDB server for this test alone and removes it when
// the test is over.
func StartMariaDB(tb testing.TB) *Server {
	tb.Helper()
	return mariadbFamily.start(tb)
}

func (f *family) dsn(tb testing.TB) string {
	tb.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if dsn := os.Getenv(f.variable); dsn != "" {
		f.source.Store("from " + f.variable)
		return dsn
	}
	if f.shared == nil && f.err == nil {
		f.shared, f.err = f.launch(f.installed(tb))
	}
	if f.err != nil {
		tb.Fatalf("testserver: %v", f.err)
	}
	return f.shared.DSN
}

func (f *family) start(tb testing.TB) *Server {
	tb.Helper()
	return f.startEngine(tb, f.installed(tb))
}

func (f *family) startEngine(tb testing.TB, e engine) *Server {
	tb.Helper()
	s, err := f.launch(e)
	if err != nil {
		tb.Fatalf("testserver: %v", err)
	}
	s.tb = tb
	tb.Cleanup(s.discard)
	return s
}

// installed finds the binaries. Without them it ends the test.
func (f *family) installed(tb testing.TB) engine {
	tb.Helper()
	e, ok := f.find()
	if !ok {
		f.missing(tb)
	}
	return e
}

// launch starts a new server.
func (f *family) launch(e engine) (*Server, error) {
	s, err := newServer(e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	f.source.Store(e.version() + " (private)")
	return s, nil
}

func (f *family) missing(tb testing.TB) {
	tb.Helper()
	if f.binaries != "" && os.Getenv(f.binaries) != "" {
		line := fmt.Sprintf("testserver: no %s in the directory that %s names", f.name, f.binaries)
		tb.Fatal(line)
	}
	var advice []string
	if f.debian != "" {
		advice = append(advice, "install the Debian package "+f.debian)
	}
	if f.variable != "" {
		advice = append(advice, "set "+f.variable)
	}
	line := fmt.Sprintf("testserver: no %s here: %s", f.name, strings.Join(advice, " or "))
	if f.optional {
		tb.Skip(line)
	}
	without(tb, line)
}

// Main runs the tests, stops the servers, prints [Summary] and returns the
// exit status:
//
//	func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }
//
// An interrupted or crashed process is cleaned up after as well, by its watchdog.
func Main(m *testing.M) int {
	code := m.Run()
	Stop()
	fmt.Println(Summary())
	return code
}

// Stop ends every private server of this process and removes what it left on
// disk. A later call of [Postgres] or [MariaDB] starts afresh.
func Stop() {
	for _, f := range families {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.shared, f.err = nil, nil
	}
	discardScratch()
}

// Summary says in one line which servers this process used, such as
// "servers: PostgreSQL 15.18 (private), MariaDB none, MySQL none, PgBouncer none".
func Summary() string {
	var parts []string
	for _, f := range families {
		source := f.source.Load()
		if source == nil {
			source = "none"
		}
		parts = append(parts, fmt.Sprint(f.name, " ", source))
	}
	return "servers: " + strings.Join(parts, ", ")
}
