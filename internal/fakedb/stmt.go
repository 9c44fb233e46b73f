package fakedb

import (
	"context"
	sqldriver "database/sql/driver"
)

// stmt is a prepared statement. Like conn it has every optional interface; database/sql sees one of the stmtShapes.
type stmt struct {
	c      *conn
	id     int
	text   string
	input  int     // placeholders; -1: not known
	cursor *cursor // the one cursor of all its row sets, as in SQLite

	// Guarded by c.s.mu.
	closed   bool
	openRows int
	epoch    int // of the connection, at Prepare
	schema   int // of the server, at Prepare
}

// prepare is the body of a Prepare. A text that no command matches may still be a handler's.
func (c *conn) prepare(text string) (sqldriver.Stmt, error) {
	parsed, err := parse(text)
	if err != nil && !c.s.asksHandlers() {
		return nil, err
	}
	st := &stmt{c: c, text: text, input: parsed.input, cursor: new(cursor)}
	if !c.s.countInput {
		st.input = -1
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.stmts++
	st.id, st.epoch, st.schema = c.s.stmts, c.stmtEpoch, c.s.schema
	c.prepared++
	c.s.stats.Prepared++
	return stmtShapes[c.s.ifaces&AllStmt](st), nil
}

// NumInput is no driver call to the fake: it needs no connection.
func (st *stmt) NumInput() int { return st.input }

func (st *stmt) ExecContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	return st.c.exec(ctx, Call{Kind: Exec, Conn: st.c.id, Stmt: st.id, Text: st.text, Args: args}, st)
}

func (st *stmt) QueryContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	return st.c.query(ctx, Call{Kind: Query, Conn: st.c.id, Stmt: st.id, Text: st.text, Args: args}, st)
}

func (st *stmt) Exec(args []sqldriver.Value) (sqldriver.Result, error) {
	return st.ExecContext(context.Background(), named(args))
}

func (st *stmt) Query(args []sqldriver.Value) (sqldriver.Rows, error) {
	return st.QueryContext(context.Background(), named(args))
}

func (st *stmt) CheckNamedValue(nv *sqldriver.NamedValue) error {
	return st.c.checked(nv, st.c.s.stmtCheck)
}

func (st *stmt) ColumnConverter(idx int) sqldriver.ValueConverter { return st.c.s.converter(idx) }

// Close closes the statement even if its hook fails.
func (st *stmt) Close() error {
	defer st.c.enter(CloseStmt)()
	call := Call{Kind: CloseStmt, Conn: st.c.id, Stmt: st.id, Text: st.text}
	err := st.c.settle(st.c.s.perform(context.Background(), call, nil, nil))
	st.c.s.mu.Lock()
	defer st.c.s.mu.Unlock()
	if st.closed {
		st.c.s.violateLocked("conn %d: second Close of statement %d", st.c.id, st.id)
		return errStmtClosed
	}
	st.closed = true
	st.c.stmtsClosed++
	st.c.s.stats.StmtsClosed++
	return err
}

// refuse says why the server does not run the statement, nil if it does.
func (st *stmt) refuse(kind Kind) error {
	st.c.s.mu.Lock()
	defer st.c.s.mu.Unlock()
	switch {
	case st.closed:
		st.c.s.violateLocked("conn %d: %s of statement %d after its Close", st.c.id, kind, st.id)
		return errStmtClosed
	case st.epoch != st.c.stmtEpoch:
		return errf("26000", "prepared statement does not exist")
	case st.schema != st.c.s.schema:
		return errf("0A000", "cached plan must not change result type")
	case st.openRows > 0:
		st.c.s.violateLocked("conn %d: %s of statement %d while rows of it are open", st.c.id, kind, st.id)
	}
	return nil
}
