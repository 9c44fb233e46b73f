package integration

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/XSAM/otelsql"
	"github.com/go-sql-driver/mysql"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

const ms = time.Millisecond

// slack is what a busy machine under the race detector may add to a time that is only said to be bounded.
const slack = time.Second

// target is a driver, a server to run it on, and that server's words for what the tests need.
type target struct {
	name   string
	driver string
	dsn    func(testing.TB) string

	arg     string // the first placeholder
	session string // SQL: the number of the session, which changes with the connection
	limit   string // SQL: the session's statement timeout as the server shows it
	slow    string // SQL: a query of 5 seconds or more
	slowSet string // SQL: the same without a result, where a driver wants that from Exec; "": slow
	kill    string // SQL: ends the session of this number (a verb for fmt)
}

var (
	pgx     = target{name: "pgx", driver: "pgx", dsn: postgresDSN}.postgres()
	pq      = target{name: "pq", driver: "postgres", dsn: postgresDSN}.postgres()
	mariadb = target{
		name: "mariadb", driver: "mysql", dsn: testserver.MariaDB, arg: "?",
		session: "SELECT CONNECTION_ID()",
		limit:   "SELECT @@max_statement_time",
		slow:    "SELECT count(*) FROM seq_1_to_50 WHERE SLEEP(0.1) = 0",
		// (*Stmt).Exec of this driver never returns if a query that it runs fails after its columns were sent.
		slowSet: "SET @n = (SELECT count(*) FROM seq_1_to_50 WHERE SLEEP(0.1) = 0)",
		kill:    "KILL %d",
	}
	sqlite = target{
		name: "sqlite", driver: "sqlite", dsn: sqliteFile, arg: "?",
		slow: "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c",
	}

	postgresTargets = []target{pgx, pq}
	serverTargets   = []target{pgx, pq, mariadb}
	allTargets      = []target{pgx, pq, mariadb, sqlite}
)

// traced is the target with its driver inside otelsql, as many services have it.
func (tg target) traced() target {
	name, err := otelsql.Register(tg.driver)
	if err != nil {
		panic(err)
	}
	tg.name, tg.driver = tg.name+" in otelsql", name
	return tg
}

var tracedTargets = []target{pgx.traced(), pq.traced(), mariadb.traced()}

func (tg target) postgres() target {
	tg.arg = "$1"
	tg.session = "SELECT pg_backend_pid()"
	tg.limit = "SHOW statement_timeout"
	tg.slow = "SELECT pg_sleep(5)"
	tg.kill = "SELECT pg_terminate_backend(%d)"
	return tg
}

// The driver writes each dead connection that it finds to its own log.
func init() { mysql.SetLogger(log.New(io.Discard, "", 0)) }

func sqliteFile(tb testing.TB) string {
	return "file:" + filepath.Join(tb.TempDir(), "db") + "?_pragma=busy_timeout(5000)"
}

// on runs a test on several targets.
func on(t *testing.T, targets []target, test func(t *testing.T, tg target)) {
	t.Helper()
	t.Parallel()
	for _, tg := range targets {
		t.Run(tg.name, func(t *testing.T) {
			t.Parallel()
			test(t, tg)
		})
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// patient gives the standard pools time to dial, where a test is not about that.
func patient() partition.Option {
	c := partition.Config{Pools: make(map[workload.Name]partition.PoolConfig)}
	for _, name := range standard {
		c.Pools[name] = partition.PoolConfig{AcquireTimeout: 10 * time.Second}
	}
	return partition.WithConfig(c)
}

var standard = []workload.Name{workload.OLTP, workload.Reporting, workload.Batch, workload.Admin}

// rig is a partitioned handle on a real server.
type rig struct {
	testing.TB
	target target
	dsn    string
	db     *sql.DB
	reg    *partition.Registry
}

// setup opens a handle. When the test ends every permit must be back.
func setup(tb testing.TB, tg target, opts ...partition.Option) *rig {
	tb.Helper()
	return setupOn(tb, tg, tg.dsn(tb), opts...)
}

func setupOn(tb testing.TB, tg target, dsn string, opts ...partition.Option) *rig {
	tb.Helper()
	opts = append([]partition.Option{partition.WithLogger(quiet), patient()}, opts...)
	db, err := partition.Open(tg.driver, dsn, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	reg, ok := partition.RegistryOf(db)
	if !ok {
		tb.Fatal("no registry behind the handle")
	}
	r := &rig{tb, tg, dsn, db, reg}
	tb.Cleanup(func() {
		r.settled()
		if err := db.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return r
}

// plain is the same driver on the same server, through database/sql alone.
func (r *rig) plain() *sql.DB {
	r.Helper()
	db, err := sql.Open(r.target.driver, r.dsn)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { db.Close() })
	return db
}

// settled fails the test unless every permit comes back: a discarded connection gives its own back when it is closed.
func (r *rig) settled() {
	r.Helper()
	for _, p := range r.reg.Pools() {
		eventually(r, 10*time.Second, func() string {
			if s := p.Stats(); s.InUse != 0 || s.Waiting != 0 {
				return fmt.Sprintf("pool %s: in use %d, waiting %d", p.Name(), s.InUse, s.Waiting)
			}
			return ""
		})
	}
}

func (r *rig) stats(name workload.Name) partition.Stats { return r.pool(name).Stats() }

func (r *rig) pool(name workload.Name) *partition.Pool {
	r.Helper()
	p, ok := r.reg.Pool(name)
	if !ok {
		r.Fatalf("no pool %q", name)
	}
	return p
}

func (r *rig) exec(ctx context.Context, query string, args ...any) {
	r.Helper()
	if _, err := r.db.ExecContext(ctx, query, args...); err != nil {
		r.Fatalf("%s: %v", query, err)
	}
}

// querier is a *sql.DB, a *sql.Conn or a *sql.Tx.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// ask returns the one value of a query as text.
func ask(tb testing.TB, ctx context.Context, q querier, query string, args ...any) string {
	tb.Helper()
	var value string
	if err := q.QueryRowContext(ctx, query, args...).Scan(&value); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return value
}

// take checks connections of a pool out until the test or giveBack returns them.
func (r *rig) take(ctx context.Context, n int) (conns []*sql.Conn, giveBack func()) {
	r.Helper()
	return checkOut(r, ctx, r.db, n)
}

func checkOut(tb testing.TB, ctx context.Context, db *sql.DB, n int) (conns []*sql.Conn, giveBack func()) {
	tb.Helper()
	for range n {
		c, err := db.Conn(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		conns = append(conns, c)
	}
	giveBack = func() {
		for _, c := range conns {
			c.Close()
		}
	}
	tb.Cleanup(giveBack)
	return conns, giveBack
}

var tables atomic.Int64

// table creates a table with a name of its own and these columns.
func (r *rig) table(columns string) string {
	r.Helper()
	name := fmt.Sprintf("t%d", tables.Add(1))
	admin := workload.With(context.Background(), workload.Admin)
	r.exec(admin, "CREATE TABLE "+name+" ("+columns+")")
	r.Cleanup(func() {
		if _, err := r.db.ExecContext(admin, "DROP TABLE "+name); err != nil {
			r.Errorf("drop: %v", err)
		}
	})
	return name
}

// withParam adds a parameter to a URL.
func withParam(tb testing.TB, dsn, key, value string) string {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal("cannot parse the server's URL")
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String()
}

// in is a context tagged with a workload.
func in(name workload.Name) context.Context { return workload.With(context.Background(), name) }

var (
	oltp      = in(workload.OLTP)
	reporting = in(workload.Reporting)
)

func pool(name workload.Name, c partition.PoolConfig) partition.Option {
	return partition.WithPool(name, c)
}

// eventually waits until wrong returns nothing, and fails with what it last returned if that takes too long.
func eventually(tb testing.TB, within time.Duration, wrong func() string) {
	tb.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(5 * ms) {
		what := wrong()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			tb.Errorf("after %v: %s", within, what)
			return
		}
	}
}

// between fails unless least <= d <= most + slack.
func between(tb testing.TB, what string, d, least, most time.Duration) {
	tb.Helper()
	if d < least || d > most+slack {
		tb.Errorf("%s took %v, want %v to %v", what, d, least, most)
	}
}

// withUser is the DSN of go-sql-driver/mysql with another user, who has no password.
func withUser(tb testing.TB, dsn, user string) string {
	tb.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		tb.Fatal("cannot parse the server's DSN")
	}
	config.User, config.Passwd = user, ""
	return config.FormatDSN()
}
