//go:build !go1.27

package driver

import sqldriver "database/sql/driver"

// scanRows is for Go 1.27.
type scanRows struct{}

func (w *spareRows) wrap() sqldriver.Rows { return &w.rows }
