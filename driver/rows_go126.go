//go:build !go1.27

package driver

import sqldriver "database/sql/driver"

func wrapRows(r *rows) sqldriver.Rows { return r }
