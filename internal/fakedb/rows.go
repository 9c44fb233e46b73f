package fakedb

import (
	"bytes"
	"context"
	sqldriver "database/sql/driver"
)

// rows is an open row set: a reader of a cursor, which it shares with the other row sets of its prepared statement. It
// has every optional interface of its time; database/sql sees one of the rowsShapes.
type rows struct {
	x      *execution
	cursor *cursor
	closed bool
	lent   [][]byte // what the last Next handed out: the driver's memory, good until the next call
}

// query is a Query, of a prepared statement if st is not nil.
func (c *conn) query(ctx context.Context, call Call, st *stmt) (sqldriver.Rows, error) {
	x := &execution{c: c, ctx: ctx, call: call, st: st}
	if err := c.do(ctx, call, x.play); err != nil {
		return nil, err
	}
	r := &rows{x: x, cursor: x.cursor()}
	r.count(+1)
	return rowsShapes[c.s.ifaces&(AllRows|RowsColumnScanner)](r), nil
}

func (r *rows) count(d int) {
	r.x.c.s.mu.Lock()
	defer r.x.c.s.mu.Unlock()
	r.x.c.openRows += d
	if r.x.st != nil {
		r.x.st.openRows += d
	}
}

func (r *rows) Columns() []string { return r.cursor.columns() }

func (r *rows) Next(dest []sqldriver.Value) error {
	return r.step(func() error {
		row, err := r.cursor.next(r.x)
		for i, v := range row {
			dest[i] = r.lend(v)
		}
		return err
	})
}

func (r *rows) HasNextResultSet() bool { return r.cursor.hasNextSet() }

func (r *rows) NextResultSet() error { return r.step(r.cursor.nextSet) }

// step is a driver call that moves on within the rows. To the server it is part of the statement.
func (r *rows) step(body func() error) error {
	c := r.x.c
	defer c.enter(Next)()
	r.takeBack()
	refused := r.refuse()
	if refused == nil {
		defer c.run()()
	}
	call := Call{Kind: Next, Conn: c.id, Stmt: r.x.call.Stmt, Text: r.x.call.Text}
	return c.settle(c.s.perform(r.x.ctx, call, body, refused))
}

func (r *rows) refuse() error {
	if r.closed {
		r.x.c.violate("next of rows after their Close")
		return errRowsClosed
	}
	return r.x.interrupted()
}

func (r *rows) Close() error {
	c := r.x.c
	defer c.enter(CloseRows)()
	r.takeBack()
	call := Call{Kind: CloseRows, Conn: c.id, Stmt: r.x.call.Stmt, Text: r.x.call.Text}
	err := c.settle(c.s.perform(context.Background(), call, nil, nil))
	if r.closed {
		c.violate("second Close of rows")
		return errRowsClosed
	}
	r.closed = true
	r.count(-1)
	r.cursor.end()
	return err
}

// lend copies bytes into memory that is the driver's.
func (r *rows) lend(v sqldriver.Value) sqldriver.Value {
	b, ok := v.([]byte)
	if !ok {
		return v
	}
	b = bytes.Clone(b)
	r.lent = append(r.lent, b)
	return b
}

// takeBack spoils lent memory, for those who kept it.
func (r *rows) takeBack() {
	for _, b := range r.lent {
		for i := range b {
			b[i] = '#'
		}
	}
	r.lent = nil
}
