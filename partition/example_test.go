package partition_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// The examples run on a fake server that takes itself for a MariaDB. A program of yours has "pgx", "postgres", "mysql"
// or "sqlite" here, and imports that driver.
var driverName = registerExampleDriver()

const dsn = "shop"

// An idle connection of a driver without a SessionResetter is lent without a word to the server, so that no machine is
// too slow for the acquire timeouts of the examples.
func registerExampleDriver() string {
	s := fakedb.New(fakedb.WithoutLog(), fakedb.Without(fakedb.SessionResetter))
	s.Handle(answerExample)
	return s.Register("example")
}

var askedLimit = regexp.MustCompile(`< (\d+\.\d+)`)

func answerExample(ctx context.Context, c fakedb.Call) (*fakedb.Answer, error) {
	switch {
	case strings.Contains(c.Text, "version()"):
		return row("10.11.6-MariaDB"), nil
	case strings.Contains(c.Text, "max_statement_time"):
		limit := 0.0
		if m := askedLimit.FindStringSubmatch(c.Text); m != nil {
			limit, _ = strconv.ParseFloat(m[1], 64) // digits and a dot
		}
		return row(limit, nil), nil
	case strings.Contains(c.Text, "SLEEP"):
		<-ctx.Done()
		return nil, ctx.Err()
	case strings.HasPrefix(c.Text, "SELECT"):
		return row("ada"), nil
	}
	return &fakedb.Answer{}, nil
}

func row(values ...sqldriver.Value) *fakedb.Answer {
	return &fakedb.Answer{Columns: make([]string, len(values)), Rows: [][]sqldriver.Value{values}}
}

// must opens one connection in each pool, as a service does before it says that it is ready.
func must(db *sql.DB, err error) *sql.DB {
	if err != nil {
		log.Fatal(err)
	}
	reg, _ := partition.RegistryOf(db)
	if err := reg.Warm(context.Background()); err != nil {
		log.Fatal(err)
	}
	return db
}

// One word to change, one tag on the context, and a plain *sql.DB in return.
func Example() {
	db := must(partition.Open(driverName, dsn)) // was: sql.Open
	defer db.Close()

	var name string
	ctx := context.Background()
	if err := db.QueryRowContext(ctx, "SELECT name FROM users WHERE id = ?", 7).Scan(&name); err != nil {
		log.Fatal(err)
	}
	fmt.Println("untagged work runs in the pool of logins:", name)

	ctx = workload.With(ctx, workload.Reporting)
	if err := db.QueryRowContext(ctx, "SELECT max(name) FROM users").Scan(&name); err != nil {
		log.Fatal(err)
	}
	fmt.Println("tagged work runs in its own:", name)
	// Output:
	// untagged work runs in the pool of logins: ada
	// tagged work runs in its own: ada
}

// What SetMaxOpenConns said before: the standard pools share the budget in the ratio of their default sizes.
func ExampleWithBudget() {
	db := must(partition.Open(driverName, dsn, partition.WithBudget(20)))
	defer db.Close()

	reg, _ := partition.RegistryOf(db)
	for _, pool := range reg.Pools() {
		fmt.Println(pool.Name(), pool.Config().MaxOpenConns)
	}
	// Output:
	// admin 2
	// batch 2
	// oltp 12
	// reporting 4
}

// A pool with a name of your own, beside the standard ones, and one of those without the rest of its defaults. Only
// MaxOpenConns is required of a new pool.
func ExampleWithPool() {
	const webhooks workload.Name = "webhooks"
	db := must(partition.Open(driverName, dsn,
		partition.WithPool(webhooks, partition.PoolConfig{MaxOpenConns: 4, StatementTimeout: 2 * time.Second}),
		partition.WithPool(workload.Reporting, partition.PoolConfig{MaxWaiting: partition.NoQueue}),
	))
	defer db.Close()

	reg, _ := partition.RegistryOf(db)
	for _, name := range []workload.Name{webhooks, workload.Reporting} {
		pool, _ := reg.Pool(name)
		c := pool.Config()
		fmt.Println(name, c.MaxOpenConns, c.MaxWaiting, c.AcquireTimeout, c.StatementTimeout)
	}
	// Output:
	// webhooks 4 4 100ms 2s
	// reporting 3 -1 50ms 1m0s
}

// A handle on which every piece of work must say what it is.
func ExampleWithRequiredTag() {
	db := must(partition.Open(driverName, dsn, partition.WithRequiredTag()))
	defer db.Close()

	_, err := db.ExecContext(context.Background(), "DELETE FROM sessions")
	fmt.Println(err, errors.Is(err, partition.ErrRejected))
	_, err = db.ExecContext(workload.With(context.Background(), "cleanup"), "DELETE FROM sessions")
	fmt.Println(err, errors.Is(err, partition.ErrUnknownWorkload))
	// Output:
	// partition: context carries no workload tag false
	// partition: unknown workload "cleanup" (pools: admin, batch, oltp, reporting) true
}

// What each error means to a client of an HTTP service.
func Example_httpErrors() {
	respond := func(w http.ResponseWriter, err error) {
		var refused *partition.AcquireError
		switch {
		case errors.Is(err, partition.ErrRejected) && errors.As(err, &refused): // nothing was executed
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refused.RetryAfter().Seconds()))))
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case errors.As(err, &refused): // the caller's own context ended while it waited
			http.Error(w, "gave up waiting", http.StatusServiceUnavailable)
		case errors.Is(err, stmttimeout.ErrExceeded): // it ran, and may have taken effect
			http.Error(w, "took too long", http.StatusGatewayTimeout)
		default: // a bug, a server that is down, shutdown, or the database's own error
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}

	db := must(partition.Open(driverName, dsn,
		partition.WithPool(workload.Reporting, partition.PoolConfig{MaxOpenConns: 1, MaxWaiting: partition.NoQueue})))
	defer db.Close()
	ctx := workload.With(context.Background(), workload.Reporting)
	running, err := db.BeginTx(ctx, nil) // somebody else's report
	if err != nil {
		log.Fatal(err)
	}
	defer running.Rollback()

	_, err = db.QueryContext(ctx, "SELECT * FROM orders")
	w := httptest.NewRecorder()
	respond(w, err)
	fmt.Println(w.Code, http.StatusText(w.Code))
	fmt.Println("Retry-After:", w.Header().Get("Retry-After"))
	// Output:
	// 503 Service Unavailable
	// Retry-After: 1
}

// A limit for one call, tighter than the pool's. The next call is back at the pool's own.
func Example_statementTimeout() {
	db := must(partition.Open(driverName, dsn))
	defer db.Close()

	ctx := stmttimeout.With(context.Background(), 20*time.Millisecond)
	_, err := db.ExecContext(ctx, "SELECT SLEEP(60)")

	var exceeded *stmttimeout.Error
	if errors.As(err, &exceeded) {
		fmt.Println("limit:", exceeded.Limit)
	}
	fmt.Println("exceeded:", errors.Is(err, stmttimeout.ErrExceeded))
	fmt.Println("rejected:", errors.Is(err, partition.ErrRejected))
	// Output:
	// limit: 20ms
	// exceeded: true
	// rejected: false
}

// A transaction stays in the pool that it began in, and so does a *sql.Conn.
func Example_transaction() {
	db := must(partition.Open(driverName, dsn))
	defer db.Close()
	reg, _ := partition.RegistryOf(db)
	reporting, _ := reg.Pool(workload.Reporting)

	tx, err := db.BeginTx(context.Background(), nil) // untagged: oltp
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	ctx := workload.With(context.Background(), workload.Reporting)
	if _, err := tx.ExecContext(ctx, "UPDATE orders SET paid = true WHERE id = ?", 42); err != nil {
		log.Fatal(err)
	}
	fmt.Println("in use in reporting:", reporting.Stats().InUse)
	fmt.Println(tx.Commit())
	// Output:
	// in use in reporting: 0
	// <nil>
}

// Migrations belong in the admin pool, which has no statement timeout. For a tool that passes no context on, a *sql.Conn
// of that pool, or the pool's own *sql.DB, does it.
func Example_migration() {
	db := must(partition.Open(driverName, dsn))
	defer db.Close()
	reg, _ := partition.RegistryOf(db)

	ctx := workload.With(context.Background(), workload.Admin)
	conn, err := db.Conn(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(context.Background(), "CREATE INDEX orders_paid ON orders (paid)"); err != nil {
		log.Fatal(err)
	}
	admin, _ := reg.Pool(workload.Admin)
	fmt.Println("in use in admin:", admin.Stats().InUse)
	fmt.Println("no statement timeout:", admin.Config().StatementTimeout == partition.NoTimeout)
	// Output:
	// in use in admin: 1
	// no statement timeout: true
}

// Ready is a service whose database answers. A pool that is full says nothing of that, so a crowd of reports must not
// take the service out of rotation.
func ExampleRegistry_Health() {
	db := must(partition.Open(driverName, dsn, partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1})))
	defer db.Close()
	reg, _ := partition.RegistryOf(db)

	ready := func(w http.ResponseWriter, r *http.Request) {
		if err := reg.Health(r.Context()); err != nil {
			http.Error(w, "database unreachable", http.StatusServiceUnavailable)
		}
	}

	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	w := httptest.NewRecorder()
	ready(w, httptest.NewRequest(http.MethodGet, "/ready", nil))
	pool, _ := reg.Pool(workload.OLTP)
	fmt.Println("in use:", pool.Stats().InUse, "of", pool.Stats().MaxOpenConns)
	fmt.Println("ready:", w.Code)
	// Output:
	// in use: 1 of 1
	// ready: 200
}

// A worker whose library passes no context on gets a *sql.DB of its own, all of which runs in one pool.
func ExamplePool_DB() {
	db := must(partition.Open(driverName, dsn))
	defer db.Close()
	reg, _ := partition.RegistryOf(db)
	batch, _ := reg.Pool(workload.Batch)

	jobs := batch.DB()
	tx, err := jobs.Begin()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("in use in batch:", batch.Stats().InUse)
	tx.Rollback()
	fmt.Println(jobs.Close())
	// Output:
	// in use in batch: 1
	// partition: pool "batch" is not closed: it closes with the *sql.DB that Open returned
}

// An operator turns reports away while the database is in trouble. What runs goes on.
func ExamplePool_Pause() {
	db := must(partition.Open(driverName, dsn))
	defer db.Close()
	reg, _ := partition.RegistryOf(db)
	pool, _ := reg.Pool(workload.Reporting)
	ctx := workload.With(context.Background(), workload.Reporting)

	pool.Pause()
	_, err := db.ExecContext(ctx, "SELECT * FROM orders")
	fmt.Println("paused:", errors.Is(err, partition.ErrPaused), errors.Is(err, partition.ErrRejected))
	pool.Resume()
	_, err = db.ExecContext(ctx, "SELECT * FROM orders")
	fmt.Println("resumed:", err)
	// Output:
	// paused: true true
	// resumed: <nil>
}

// Give a pool more room while it is in use, within the budget.
func ExamplePool_Resize() {
	db := must(partition.Open(driverName, dsn, partition.WithBudget(20)))
	defer db.Close()
	reg, _ := partition.RegistryOf(db)
	oltp, _ := reg.Pool(workload.OLTP)
	reporting, _ := reg.Pool(workload.Reporting)

	fmt.Println(reporting.Resize(6))
	fmt.Println(oltp.Resize(10))
	fmt.Println(reporting.Resize(6))
	// Output:
	// partition: pool "reporting": MaxOpenConns 6 would make 22 connections in all, the budget is 20
	// <nil>
	// <nil>
}

// The driver's own connection, for what database/sql has no words for: a *stdlib.Conn with pgx, so that CopyFrom works.
func ExampleRaw() {
	db := must(partition.Open(driverName, dsn))
	defer db.Close()
	conn, err := db.Conn(workload.With(context.Background(), workload.Batch))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	err = partition.Raw(conn, func(driverConn any) error {
		fmt.Println("the fake driver's own:", fakedb.ConnID(driverConn) > 0)
		return nil
	})
	fmt.Println(err)
	// Output:
	// the fake driver's own: true
	// <nil>
}

// rejections counts who was turned away. An observer implements only what it wants to hear.
type rejections struct{ n atomic.Int64 }

func (r *rejections) AcquireDone(_ context.Context, e partition.AcquireEvent) {
	if errors.Is(e.Err, partition.ErrRejected) {
		r.n.Add(1)
	}
}

// Count rejections for your metrics.
func ExampleWithObserver() {
	var seen rejections
	db := must(partition.Open(driverName, dsn, partition.WithObserver(&seen)))
	defer db.Close()
	reg, _ := partition.RegistryOf(db)
	pool, _ := reg.Pool(workload.Batch)

	pool.Pause()
	for range 3 {
		db.ExecContext(workload.With(context.Background(), workload.Batch), "DELETE FROM sessions")
	}
	fmt.Println(seen.n.Load(), pool.Stats().RejectedPaused)
	// Output: 3 3
}
