package fakedb

import (
	"context"
	sqldriver "database/sql/driver"
	"io"
	"time"
)

// Null returns a connector for benchmarks. Its driver has every usual interface but NamedValueChecker, does nothing and
// allocates nothing once a connection is open: Exec affects one row, Query has one row of one int64, a connection's
// statement, rows and transaction are made with it. So a connection can have but one of each in use. It counts and
// checks nothing.
func Null() sqldriver.Connector { return nullConnector{} }

// NullChecked is Null with a NamedValueChecker that takes every value as it is.
func NullChecked() sqldriver.Connector { return nullConnector{checked: true} }

// NullSleep is Null whose Exec and Query take d, or until their context is done.
func NullSleep(d time.Duration) sqldriver.Connector { return nullConnector{sleep: d} }

type nullConnector struct {
	checked bool
	sleep   time.Duration
}

func (n nullConnector) Connect(context.Context) (sqldriver.Conn, error) {
	c := &nullConn{sleep: n.sleep}
	c.stmt.c = c
	if n.checked {
		return nullCheckedConn{c}, nil
	}
	return c, nil
}

func (n nullConnector) Driver() sqldriver.Driver { return nullDriver{n} }

type nullDriver struct{ nullConnector }

func (d nullDriver) Open(string) (sqldriver.Conn, error) { return d.Connect(context.Background()) }

type nullConn struct {
	sleep time.Duration
	timer *time.Timer // kept between calls
	stmt  nullStmt
	rows  nullRows
}

var _ interface {
	sqldriver.Conn
	sqldriver.Pinger
	sqldriver.ExecerContext
	sqldriver.QueryerContext
	sqldriver.ConnPrepareContext
	sqldriver.ConnBeginTx
	sqldriver.SessionResetter
	sqldriver.Validator
	sqldriver.Tx
} = (*nullConn)(nil)

// Boxed once.
var (
	nullResult  sqldriver.Result = sqldriver.RowsAffected(1)
	nullColumns                  = []string{"n"}
	nullValue   sqldriver.Value  = int64(1)
)

func (c *nullConn) Ping(context.Context) error                                         { return nil }
func (c *nullConn) Prepare(string) (sqldriver.Stmt, error)                             { return &c.stmt, nil }
func (c *nullConn) Close() error                                                       { return nil }
func (c *nullConn) Begin() (sqldriver.Tx, error)                                       { return c, nil }
func (c *nullConn) Commit() error                                                      { return nil }
func (c *nullConn) Rollback() error                                                    { return nil }
func (c *nullConn) ResetSession(context.Context) error                                 { return nil }
func (c *nullConn) IsValid() bool                                                      { return true }
func (c *nullConn) BeginTx(context.Context, sqldriver.TxOptions) (sqldriver.Tx, error) { return c, nil }

func (c *nullConn) PrepareContext(context.Context, string) (sqldriver.Stmt, error) {
	return &c.stmt, nil
}

func (c *nullConn) ExecContext(ctx context.Context, _ string, _ []sqldriver.NamedValue) (sqldriver.Result, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	return nullResult, nil
}

func (c *nullConn) QueryContext(ctx context.Context, _ string, _ []sqldriver.NamedValue) (sqldriver.Rows, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	c.rows.read = false
	return &c.rows, nil
}

func (c *nullConn) wait(ctx context.Context) error {
	if c.sleep <= 0 {
		return nil
	}
	if c.timer == nil {
		c.timer = time.NewTimer(c.sleep)
	} else {
		c.timer.Reset(c.sleep)
	}
	select {
	case <-c.timer.C:
		return nil
	case <-ctx.Done():
		c.timer.Stop()
		return ctx.Err()
	}
}

type nullCheckedConn struct{ *nullConn }

func (nullCheckedConn) CheckNamedValue(*sqldriver.NamedValue) error { return nil }

type nullStmt struct{ c *nullConn }

func (s *nullStmt) Close() error  { return nil }
func (s *nullStmt) NumInput() int { return -1 }

func (s *nullStmt) ExecContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	return s.c.ExecContext(ctx, "", args)
}

func (s *nullStmt) QueryContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	return s.c.QueryContext(ctx, "", args)
}

func (s *nullStmt) Exec([]sqldriver.Value) (sqldriver.Result, error) {
	return s.c.ExecContext(context.Background(), "", nil)
}

func (s *nullStmt) Query([]sqldriver.Value) (sqldriver.Rows, error) {
	return s.c.QueryContext(context.Background(), "", nil)
}

type nullRows struct{ read bool }

func (r *nullRows) Columns() []string { return nullColumns }
func (r *nullRows) Close() error      { return nil }

func (r *nullRows) Next(dest []sqldriver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	dest[0] = nullValue
	return nil
}
