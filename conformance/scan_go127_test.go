//go:build go1.27

package conformance_test

import (
	"reflect"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// Since Go 1.27 a driver may scan by itself (driver.RowsColumnScanner), and pgx does.
func TestArrayScansIntoASlice(t *testing.T) {
	t.Parallel()
	for name, db := range pair(t, "pgx", testserver.Postgres(t)) {
		var got []int64
		if err := db.QueryRowContext(oltp, "SELECT '{1,2,3}'::bigint[]").Scan(&got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := []int64{1, 2, 3}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
