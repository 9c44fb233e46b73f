//go:build go1.27

package fakedb

import (
	"database/sql"
	sqldriver "database/sql/driver"
)

// scanningRows scan for themselves. Who calls their Next has overlooked RowsColumnScanner.
type scanningRows struct {
	*rows
	row []sqldriver.Value
}

var _ sqldriver.RowsColumnScanner = (*scanningRows)(nil)

func newScanningRows(r *rows) *scanningRows {
	return &scanningRows{rows: r, row: make([]sqldriver.Value, len(r.Columns()))}
}

func (r *scanningRows) Next(dest []sqldriver.Value) error {
	r.x.c.violate("Next of rows that have NextRow")
	return r.rows.Next(dest)
}

func (r *scanningRows) NextRow() error { return r.rows.Next(r.row) }

func (r *scanningRows) ScanColumn(scan sqldriver.ScanContext, i int, dest any) error {
	return sql.ConvertAssign(scan, dest, r.row[i])
}

type columnScanner interface {
	NextRow() error
	ScanColumn(sqldriver.ScanContext, int, any) error
}

func init() {
	rowsShapes[RowsColumnScanner] = func(r *rows) sqldriver.Rows {
		s := newScanningRows(r)
		return struct {
			sqldriver.Rows
			columnScanner
		}{s, s}
	}
	rowsShapes[RowsColumnScanner|AllRows] = func(r *rows) sqldriver.Rows { return newScanningRows(r) }
}
