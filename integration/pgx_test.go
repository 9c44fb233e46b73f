package integration

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pgxv5 "github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func pgxConfig(t *testing.T) *pgxv5.ConnConfig {
	t.Helper()
	config, err := pgxv5.ParseConfig(postgresDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// By default pgx loses the connection of a statement that is cancelled. A configuration can have it ask the server, and keep
// the connection: the guard watches the contexts of the one, and leaves those of the other to pgx.
func TestHandlerThatAsksTheServerKeepsTheConnectionAsInPlain(t *testing.T) {
	t.Parallel()
	config := pgxConfig(t)
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 10 * time.Second}
	}
	inPlainToo(t, stdlib.GetConnector(*config), func(t *testing.T, db *sql.DB) {
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

// inPlainToo runs a test on plain database/sql and on a partitioned handle with a single connection.
func inPlainToo(t *testing.T, connector sqldriver.Connector, test func(t *testing.T, db *sql.DB)) {
	t.Helper()
	partitioned, err := partition.OpenDB(connector, partition.WithLogger(quiet), pool(workload.OLTP,
		partition.PoolConfig{MaxOpenConns: 1, StatementTimeout: time.Minute, AcquireTimeout: 10 * time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	for name, db := range map[string]*sql.DB{"plain": sql.OpenDB(connector), "partitioned": partitioned} {
		t.Run(name, func(t *testing.T) {
			defer db.Close()
			test(t, db)
		})
	}
}

// mustBeCancelled runs a statement that its caller gives up after 100 ms, on a connection that is open by then.
func mustBeCancelled(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	conn, err := db.Conn(oltp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(oltp)
	began := time.Now()
	time.AfterFunc(100*ms, cancel)
	if _, err := conn.ExecContext(ctx, query); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	between(t, "cancelled call", time.Since(began), 100*ms, 100*ms)
}

// derivingTracer limits the time of each statement, as a tracer may: what it returns is the statement's context.
type derivingTracer struct{ testing.TB }

func (d derivingTracer) TraceQueryStart(ctx context.Context, _ *pgxv5.Conn, _ pgxv5.TraceQueryStartData) context.Context {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	d.Cleanup(cancel)
	return ctx
}

func (derivingTracer) TraceQueryEnd(context.Context, *pgxv5.Conn, pgxv5.TraceQueryEndData) {}

func TestContextThatATracerDerivesEndsWithItsCallers(t *testing.T) {
	t.Parallel()
	config := pgxConfig(t)
	config.Tracer = derivingTracer{t}
	inPlainToo(t, stdlib.GetConnector(*config), func(t *testing.T, db *sql.DB) {
		mustBeCancelled(t, db, "SELECT pg_sleep(5)")
	})
}

// pausing waits before each statement, as what retries or limits a rate does.
type pausing struct{ sqldriver.Connector }

func (p pausing) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &pausingConn{conn, conn.(sqldriver.QueryerContext)}, nil
}

type pausingConn struct {
	sqldriver.Conn
	sqldriver.QueryerContext
}

func (c *pausingConn) ExecContext(ctx context.Context, _ string, _ []sqldriver.NamedValue) (sqldriver.Result, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(5 * time.Second):
		return sqldriver.ResultNoRows, nil
	}
}

func TestWrapperIsToldThatItsCallersContextHasEnded(t *testing.T) {
	t.Parallel()
	config := pgxConfig(t)
	inPlainToo(t, pausing{stdlib.GetConnector(*config)}, func(t *testing.T, db *sql.DB) {
		mustBeCancelled(t, db, "SELECT 1")
	})
}

func TestClosingAStatementBetweenRowsDoesNotPutOffTheEndOfTheirContext(t *testing.T) {
	t.Parallel()
	config := pgxConfig(t)
	inPlainToo(t, stdlib.GetConnector(*config), func(t *testing.T, db *sql.DB) {
		tx, err := db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		stmt, err := tx.PrepareContext(oltp, "SELECT 2")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(oltp)
		defer cancel()
		// Two rows that fill the server's buffer, so that the first arrives before the third is begun.
		rows, err := tx.QueryContext(ctx, `SELECT CASE i WHEN 3 THEN pg_sleep(5)::text ELSE repeat('x', 20000) END
			FROM generate_series(1, 3) i`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		rows.Next()
		time.Sleep(20 * ms) // until the guard has had its look at the query
		stmt.Close()        // pgx says that it is busy
		began := time.Now()
		time.AfterFunc(100*ms, cancel)
		for rows.Next() {
		}
		if !errors.Is(rows.Err(), context.Canceled) {
			t.Error(rows.Err())
		}
		between(t, "fetch", time.Since(began), 100*ms, 100*ms)
	})
}

func TestConnectorOfAPgxpoolIsRefused(t *testing.T) {
	t.Parallel()
	shared, err := pgxpool.New(oltp, postgresDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	connector := stdlib.GetPoolConnector(shared)
	_, err = partition.OpenDB(connector)
	if err == nil || !strings.Contains(err.Error(), "pgxpool") {
		t.Errorf("%v", err)
	}
	_, err = partition.Open("pgx", postgresDSN(t), partition.WithPoolConnector(workload.Reporting, connector))
	if err == nil || !strings.Contains(err.Error(), "reporting") {
		t.Errorf("%v", err)
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
	began := time.Now()
	ctx, cancel := end()
	defer cancel()
	_, err = conn.ExecContext(ctx, "SELECT pg_sleep(5)")
	between(t, "cancelled call", time.Since(began), after, after)
	_, next := conn.ExecContext(oltp, "SELECT 1")
	return fmt.Sprintf("%v; then %v", err, next)
}

// pgx answers ErrBadConn to a context that has ended before the call.
func TestConnectionIsKeptWhoseFirstCallComesWithAContextThatHasEnded(t *testing.T) {
	t.Parallel()
	r := setup(t, pgx)
	if err := r.reg.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	conns, _ := r.take(oltp, 1)
	ctx, cancel := context.WithCancel(oltp)
	cancel()
	if _, err := conns[0].ExecContext(ctx, "SELECT 1"); err != context.Canceled {
		t.Errorf("%v", err)
	}
	if _, err := conns[0].ExecContext(oltp, "SELECT 1"); err != nil {
		t.Errorf("the next call: %v", err)
	}
}
