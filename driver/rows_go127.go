//go:build go1.27

package driver

import sqldriver "database/sql/driver"

var _ sqldriver.RowsColumnScanner = (*scanRows)(nil)

// scanRows is rows of a driver that scans columns itself, which database/sql then leaves to it.
type scanRows struct {
	*rows
	scanner sqldriver.RowsColumnScanner
}

func (w *spareRows) wrap() sqldriver.Rows {
	scanner, ok := w.rows.rows.(sqldriver.RowsColumnScanner)
	if !ok {
		return &w.rows
	}
	w.scan = scanRows{&w.rows, scanner}
	return &w.scan
}

func (r *scanRows) NextRow() error {
	if err := r.resume(); err != nil {
		return err
	}
	defer r.k.c.abandon(&r.k.done)
	return r.pause(r.scanner.NextRow())
}

// ScanColumn converts what NextRow fetched. A panic in there is most often that of a Scanner of the caller's, which
// database/sql survives with the connection in order; so it is left alone.
func (r *scanRows) ScanColumn(ctx sqldriver.ScanContext, i int, dest any) error {
	return r.scanner.ScanColumn(ctx, i, dest)
}
