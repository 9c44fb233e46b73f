package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
)

// What database/sql says where a driver is too old for what is asked of it.
var (
	errNamedParameters = errors.New("sql: driver does not support the use of Named Parameters")
	errIsolation       = errors.New("sql: driver does not support non-default isolation level")
	errReadOnly        = errors.New("sql: driver does not support read-only transactions")
)

// Interfaces that are deprecated, and are still all that some drivers have.
type (
	//lint:ignore SA1019 see above
	plainExecer = sqldriver.Execer
	//lint:ignore SA1019 see above
	plainQueryer = sqldriver.Queryer
	//lint:ignore SA1019 see above
	columnConverter = sqldriver.ColumnConverter
)

// raw is a driver's connection and its optional interfaces, nil where it lacks one. Its methods choose between them as
// database/sql does.
type raw struct {
	resetter  sqldriver.SessionResetter
	validator sqldriver.Validator
	checker   sqldriver.NamedValueChecker
	queryer   sqldriver.QueryerContext
	execer    sqldriver.ExecerContext
	conn      sqldriver.Conn
	inner     sqldriver.Conn // conn without what is wrapped around it
	wrapped   bool           // there is something, which may use contexts itself, or change what it is wrapped around
	pinger    sqldriver.Pinger
	preparer  sqldriver.ConnPrepareContext
	beginner  sqldriver.ConnBeginTx

	plainExecer  plainExecer
	plainQueryer plainQueryer
}

func newRaw(conn sqldriver.Conn) (r raw) {
	r.conn = conn
	r.inner, r.wrapped = unwrap(conn)
	r.pinger, _ = conn.(sqldriver.Pinger)
	r.execer, _ = conn.(sqldriver.ExecerContext)
	r.queryer, _ = conn.(sqldriver.QueryerContext)
	r.preparer, _ = conn.(sqldriver.ConnPrepareContext)
	r.beginner, _ = conn.(sqldriver.ConnBeginTx)
	r.resetter, _ = conn.(sqldriver.SessionResetter)
	r.validator, _ = conn.(sqldriver.Validator)
	r.checker, _ = conn.(sqldriver.NamedValueChecker)
	r.plainExecer, _ = conn.(plainExecer)
	r.plainQueryer, _ = conn.(plainQueryer)
	return r
}

func (r *raw) ping(ctx context.Context) error {
	if r.pinger == nil {
		return nil
	}
	return r.pinger.Ping(ctx)
}

func (r *raw) canExec() bool  { return r.execer != nil || r.plainExecer != nil }
func (r *raw) canQuery() bool { return r.queryer != nil || r.plainQueryer != nil }

func (r *raw) exec(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	if r.execer != nil {
		return r.execer.ExecContext(contextFor(ctx, args), query, args)
	}
	values, err := plainValues(ctx, args)
	if err != nil {
		return nil, err
	}
	return r.plainExecer.Exec(query, values)
}

func (r *raw) query(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	if r.queryer != nil {
		return r.queryer.QueryContext(contextFor(ctx, args), query, args)
	}
	values, err := plainValues(ctx, args)
	if err != nil {
		return nil, err
	}
	return r.plainQueryer.Query(query, values)
}

func (r *raw) prepare(ctx context.Context, query string) (sqldriver.Stmt, error) {
	if r.preparer != nil {
		return r.preparer.PrepareContext(ctx, query)
	}
	s, err := r.conn.Prepare(query)
	if err == nil && ctx.Err() != nil {
		s.Close()
		return nil, ctx.Err()
	}
	return s, err
}

func (r *raw) begin(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	if r.beginner != nil {
		return r.beginner.BeginTx(ctx, opts)
	}
	if opts.Isolation != 0 {
		return nil, errIsolation
	}
	if opts.ReadOnly {
		return nil, errReadOnly
	}
	//lint:ignore SA1019 the driver has nothing newer
	tx, err := r.conn.Begin()
	if err == nil && ctx.Err() != nil {
		tx.Rollback()
		return nil, ctx.Err()
	}
	return tx, err
}

// plainValues converts arguments for a driver that predates contexts.
func plainValues(ctx context.Context, named []sqldriver.NamedValue) ([]sqldriver.Value, error) {
	values := make([]sqldriver.Value, len(named))
	for i, nv := range named {
		if nv.Name != "" {
			return nil, errNamedParameters
		}
		values[i] = nv.Value
	}
	return values, ctx.Err()
}

func execStmt(ctx context.Context, stmt sqldriver.Stmt, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	if s, ok := stmt.(sqldriver.StmtExecContext); ok {
		return s.ExecContext(contextFor(ctx, args), args)
	}
	values, err := plainValues(ctx, args)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 the driver has nothing newer
	return stmt.Exec(values)
}

func queryStmt(ctx context.Context, stmt sqldriver.Stmt, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	if s, ok := stmt.(sqldriver.StmtQueryContext); ok {
		return s.QueryContext(contextFor(ctx, args), args)
	}
	values, err := plainValues(ctx, args)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 the driver has nothing newer
	return stmt.Query(values)
}
