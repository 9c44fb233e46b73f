package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	pgxv5 "github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// By default pgx loses the connection of a statement that is cancelled. A configuration can have it ask the server, and keep
// the connection: the guard watches the contexts of the one, and leaves those of the other to pgx.
func TestHandlerThatAsksTheServerKeepsTheConnectionAsInPlain(t *testing.T) {
	t.Parallel()
	config, err := pgxv5.ParseConfig(postgresDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 10 * time.Second}
	}
	connector := stdlib.GetConnector(*config)
	partitioned, err := partition.OpenDB(connector, partition.WithLogger(quiet),
		pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, AcquireTimeout: 10 * time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	for name, db := range map[string]*sql.DB{"plain": sql.OpenDB(connector), "partitioned": partitioned} {
		t.Run(name, func(t *testing.T) {
			defer db.Close()
			before := ask(t, oltp, db, pgx.session)
			ctx, cancel := context.WithTimeout(oltp, 100*ms)
			defer cancel()
			if _, err := db.ExecContext(ctx, "SELECT pg_sleep(5)"); !errors.As(err, new(*pgconn.PgError)) {
				t.Errorf("%v", err)
			}
			if after := ask(t, oltp, db, pgx.session); after != before {
				t.Errorf("session %s, it was %s", after, before)
			}
		})
	}
}

// The driver is not told when a context ends. What it returns, and what becomes of the connection, is as in plain.
func TestCancelledCallsOfPgxReturnWhatTheyReturnInPlain(t *testing.T) {
	t.Parallel()
	r := setup(t, pgx)
	plain := r.plain()
	for _, after := range []time.Duration{ms, 20 * ms, 200 * ms} {
		for name, end := range map[string]func() (context.Context, context.CancelFunc){
			"deadline": func() (context.Context, context.CancelFunc) { return context.WithTimeout(oltp, after) },
			"cancel": func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(oltp)
				time.AfterFunc(after, cancel)
				return ctx, cancel
			},
		} {
			want := cancelled(t, plain, after, end)
			if got := cancelled(t, r.db, after, end); got != want {
				t.Errorf("%s after %v: %s\nin plain: %s", name, after, got, want)
			}
		}
	}
}

// cancelled is what a slow statement returns whose context ends, and what the next one on its connection does.
func cancelled(t *testing.T, db *sql.DB, after time.Duration, end func() (context.Context, context.CancelFunc)) string {
	conn, err := db.Conn(oltp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := end()
	defer cancel()
	began := time.Now()
	_, err = conn.ExecContext(ctx, "SELECT pg_sleep(5)")
	between(t, "cancelled call", time.Since(began), after, after+slack)
	_, next := conn.ExecContext(oltp, "SELECT 1")
	return fmt.Sprintf("%v; then %v", err, next)
}
