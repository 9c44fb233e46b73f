package driver

import (
	sqldriver "database/sql/driver"
	"io"
	"reflect"
)

var (
	_ sqldriver.Rows                           = (*rows)(nil)
	_ sqldriver.RowsNextResultSet              = (*rows)(nil)
	_ sqldriver.RowsColumnTypeScanType         = (*rows)(nil)
	_ sqldriver.RowsColumnTypeDatabaseTypeName = (*rows)(nil)
	_ sqldriver.RowsColumnTypeLength           = (*rows)(nil)
	_ sqldriver.RowsColumnTypeNullable         = (*rows)(nil)
	_ sqldriver.RowsColumnTypePrecisionScale   = (*rows)(nil)
)

// rows wraps a driver's rows, to keep the guard on what they fetch and to recognise a statement timeout that arrives
// while they stream. An optional interface that the driver's rows lack is answered as database/sql answers it itself
// where it is missing; the one whose presence alone makes a difference is in rows_go127.go.
type rows struct {
	k      call
	rows   sqldriver.Rows
	stmt   *prepared // to be given back with the rows; nil if there is none
	spare  *spareRows
	names  []string // of the columns: database/sql asks for them in Scan, too, where it holds no lock
	failed bool
	read   bool // to the end
	closed bool
}

// spareRows is the wrapper of a virtual connection's rows, used anew for each query: database/sql closes rows once, and
// calls nothing of them afterwards. The query's call is begun in it, and goes on in its rows.
type spareRows struct {
	rows
	busy bool
	scan scanRows // Go 1.27: see wrap
}

// unusedRows is the wrapper for a query that is about to begin.
func (c *Conn) unusedRows() *spareRows {
	if c.spare.busy {
		return new(spareRows) // several open rows on one connection: in a transaction, where the driver can
	}
	return &c.spare
}

// begin wraps the rows of the query that w was begun for, and takes over the statement that it runs from.
func (w *spareRows) begin(r sqldriver.Rows, stmt *prepared) sqldriver.Rows {
	w.k.p.opened(&w.rows, r)
	names := r.Columns()
	w.k.pause(nil)
	w.k.done = true
	w.rows.rows, w.stmt, w.spare, w.names = r, stmt, w, names
	w.failed, w.read, w.closed = false, false, false
	w.busy = true
	return w.wrap()
}

// fail ends a query that has no rows.
func (w *spareRows) fail(err error) error {
	err = w.k.end(err)
	w.free()
	return err
}

// free lets the wrapper be used again. Until then it is rows that are closed.
func (w *spareRows) free() {
	w.rows = rows{k: call{done: true}, rows: closedRows{}, closed: true}
	w.scan = scanRows{}
	w.busy = false
}

// closedRows is what is left of rows that were closed.
type closedRows struct{}

func (closedRows) Columns() []string            { return nil }
func (closedRows) Close() error                 { return nil }
func (closedRows) Next([]sqldriver.Value) error { return io.EOF }

func (r *rows) Columns() []string { return r.names }

func (r *rows) Next(dest []sqldriver.Value) error {
	if err := r.resume(); err != nil {
		return err
	}
	defer r.k.c.abandon(&r.k.done)
	return r.pause(r.rows.Next(dest))
}

func (r *rows) resume() error {
	err := r.k.resume()
	r.k.done = err != nil
	return err
}

func (r *rows) pause(err error) error {
	r.k.done = true
	if err == io.EOF {
		r.read = true
		r.k.pause(nil)
		return err
	}
	r.failed = r.failed || err != nil
	return r.k.pause(err)
}

// Close also reads what the consumer has left, in most drivers. It goes through even where the guard has fired.
func (r *rows) Close() error {
	if r.closed {
		return r.rows.Close()
	}
	r.closed = true
	defer r.spare.free()
	if r.k.resumeLast() != nil && !r.k.resumeLate() {
		r.k.release()
		return nil
	}
	r.k.done = false
	defer r.k.c.abandon(&r.k.done)
	err := r.rows.Close()
	r.k.p.closed(r)
	if !r.read && r.k.caller.Err() != nil {
		r.k.p.unended = true // unless the connection turns out to be sound
	}
	if r.stmt != nil {
		r.k.p.give(r.stmt, r.failed || err != nil)
	}
	return r.k.end(err)
}

func (r *rows) HasNextResultSet() bool {
	n, ok := r.rows.(sqldriver.RowsNextResultSet)
	if !ok || !r.ask() {
		return false
	}
	defer r.answered()
	return n.HasNextResultSet()
}

func (r *rows) NextResultSet() error {
	n, ok := r.rows.(sqldriver.RowsNextResultSet)
	if !ok {
		return io.EOF
	}
	if err := r.resume(); err != nil {
		return err
	}
	defer r.k.c.abandon(&r.k.done)
	r.read = false
	err := n.NextResultSet()
	if err == nil {
		r.names = r.rows.Columns()
	}
	return r.pause(err)
}

// ask begins a driver call that tells something of the rows, and answered ends it. It is false for rows that are closed, or
// whose connection was taken back.
func (r *rows) ask() bool { return !r.closed && !r.k.gone() && r.k.c.enter(r.k.p) }

func (r *rows) answered() { r.k.c.exit(r.k.p) }

func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	t, ok := r.rows.(sqldriver.RowsColumnTypeScanType)
	if !ok || !r.ask() {
		return reflect.TypeFor[any]()
	}
	defer r.answered()
	return t.ColumnTypeScanType(i)
}

func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	t, ok := r.rows.(sqldriver.RowsColumnTypeDatabaseTypeName)
	if !ok || !r.ask() {
		return ""
	}
	defer r.answered()
	return t.ColumnTypeDatabaseTypeName(i)
}

func (r *rows) ColumnTypeLength(i int) (int64, bool) {
	t, ok := r.rows.(sqldriver.RowsColumnTypeLength)
	if !ok || !r.ask() {
		return 0, false
	}
	defer r.answered()
	return t.ColumnTypeLength(i)
}

func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) {
	t, ok := r.rows.(sqldriver.RowsColumnTypeNullable)
	if !ok || !r.ask() {
		return false, false
	}
	defer r.answered()
	return t.ColumnTypeNullable(i)
}

func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	t, ok := r.rows.(sqldriver.RowsColumnTypePrecisionScale)
	if !ok || !r.ask() {
		return 0, 0, false
	}
	defer r.answered()
	return t.ColumnTypePrecisionScale(i)
}
