//go:build go1.27

package fakedb_test

import (
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
)

func TestScanningRowsAreScannedByThemselves(t *testing.T) {
	for _, shape := range []fakedb.Interfaces{fakedb.RowsColumnScanner, fakedb.RowsColumnScanner | fakedb.AllRows} {
		t.Run(shape.String(), func(t *testing.T) {
			inBubble(t, func(b *bench) {
				list, err := b.query("rows 3")
				b.nilError(err)
				equalList(b.T, "rows", list, 1, 2, 3)
				b.blameless()
			}, fakedb.With(shape))
		})
	}
}
