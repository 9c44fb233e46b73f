package integration

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

var (
	_ sqldriver.ExecerContext      = muteConn{}
	_ sqldriver.QueryerContext     = muteConn{}
	_ sqldriver.ConnPrepareContext = muteConn{}
	_ sqldriver.ConnBeginTx        = muteConn{}
	_ sqldriver.NamedValueChecker  = muteConn{}
	_ sqldriver.SessionResetter    = muteConn{}
	_ sqldriver.ExecerContext      = (*movingConn)(nil)
)

// opener is a driver whose connections are made by a function.
type opener func(dsn string) (sqldriver.Conn, error)

func (o opener) Open(dsn string) (sqldriver.Conn, error) { return o(dsn) }

// within is the target with its driver's connections in a wrapper.
func (tg target) within(kind string, wrap func(c sqldriver.Conn, dial func() (sqldriver.Conn, error)) sqldriver.Conn) target {
	db, err := sql.Open(tg.driver, "")
	if err != nil {
		panic(err)
	}
	open := db.Driver().Open
	tg.name, tg.driver = tg.name+" in "+kind, tg.driver+" in "+kind
	sql.Register(tg.driver, opener(func(dsn string) (sqldriver.Conn, error) {
		c, err := open(dsn)
		if err != nil {
			return nil, err
		}
		return wrap(c, func() (sqldriver.Conn, error) { return open(dsn) }), nil
	}))
	return tg
}

// muteConn is of the shape of instrumentedsql, ocsql, sqldb-logger and New Relic's agent, which do not pass IsValid on; and of a
// type that cannot be compared.
type muteConn struct {
	excluded map[string]bool
	parent   sqldriver.Conn
}

func mute(c sqldriver.Conn, _ func() (sqldriver.Conn, error)) sqldriver.Conn { return muteConn{nil, c} }

func (c muteConn) Prepare(query string) (sqldriver.Stmt, error) { return c.parent.Prepare(query) }
func (c muteConn) Close() error                                 { return c.parent.Close() }

//lint:ignore SA1019 driver.Conn has it
func (c muteConn) Begin() (sqldriver.Tx, error) { return c.parent.Begin() }

func (c muteConn) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	return c.parent.(sqldriver.ExecerContext).ExecContext(ctx, query, args)
}

func (c muteConn) QueryContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	return c.parent.(sqldriver.QueryerContext).QueryContext(ctx, query, args)
}

func (c muteConn) PrepareContext(ctx context.Context, query string) (sqldriver.Stmt, error) {
	return c.parent.(sqldriver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c muteConn) BeginTx(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	return c.parent.(sqldriver.ConnBeginTx).BeginTx(ctx, opts)
}

func (c muteConn) CheckNamedValue(v *sqldriver.NamedValue) error {
	return c.parent.(sqldriver.NamedValueChecker).CheckNamedValue(v)
}

func (c muteConn) ResetSession(ctx context.Context) error {
	return c.parent.(sqldriver.SessionResetter).ResetSession(ctx)
}

// movingConn replaces its connection while it is in use, as one that reconnects or follows a fail-over does.
type movingConn struct {
	sqldriver.Conn
	dial func() (sqldriver.Conn, error)
}

func moving(c sqldriver.Conn, dial func() (sqldriver.Conn, error)) sqldriver.Conn {
	return &movingConn{c, dial}
}

// move has a movingConn replace its connection.
const move = "move"

func (c *movingConn) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	if query != move {
		return c.Conn.(sqldriver.ExecerContext).ExecContext(ctx, query, args)
	}
	next, err := c.dial()
	if err == nil {
		c.Conn.Close()
		c.Conn = next
	}
	return sqldriver.ResultNoRows, err
}

// lib/pq is not among them: where nobody asks it IsValid, a connection that it has closed stays, and fails to close later.
var (
	mutedTargets  = []target{pgx.within("mute", mute), mariadb.within("mute", mute)}
	movingTargets = []target{pgx.within("moving", moving), mariadb.within("moving", moving)}
)

func TestCallEndsWithItsCallerWhereItsWrapperHasMovedToAnotherConnection(t *testing.T) {
	on(t, movingTargets, func(t *testing.T, tg target) {
		r := setup(t, tg, pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 1, AcquireTimeout: 10 * time.Second}))
		conns, _ := r.take(in(workload.Batch), 1)
		if _, err := conns[0].ExecContext(in(workload.Batch), move); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(in(workload.Batch))
		began := time.Now()
		time.AfterFunc(200*ms, cancel)
		if _, err := conns[0].ExecContext(ctx, tg.slow); err == nil {
			t.Error("it was not cancelled")
		}
		between(t, "the caller's return", time.Since(began), 200*ms, 500*ms)
	})
}
