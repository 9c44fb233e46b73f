package partition_test

import (
	"database/sql"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// To close one takes a round trip, so that all at once would take longer than an acquire may.
func TestManyClosedStatementsHoldTheNextCallersUpForMillisecondsAndAreAllDeallocated(t *testing.T) {
	t.Parallel()
	for _, trip := range []time.Duration{100 * time.Microsecond, 2 * ms, 20 * ms} {
		synctest.Test(t, func(t *testing.T) {
			const all = 1200 * ms // of round trips
			r := setup(t, fakedb.New(), size(workload.OLTP, 1))
			stmts := make([]*sql.Stmt, min(all/trip, 400))
			for i := range stmts {
				stmts[i] = r.mustPrepare(oltp, fmt.Sprintf("ok %d", i))
			}
			r.server.On(fakedb.CloseStmt, fakedb.Delay(trip))
			for _, stmt := range stmts {
				stmt.Close()
			}
			for range stmts {
				began := time.Now()
				r.mustExec(oltp, "ok")
				if took := time.Since(began); took >= 2*ms+trip {
					t.Fatalf("round trip %v: a caller was held up for %v", trip, took)
				}
			}
			if s := r.server.Stats(); s.StmtsClosed != s.Prepared || s.Dials != 1 {
				t.Errorf("round trip %v: prepared %d, closed %d, on %d connections", trip, s.Prepared, s.StmtsClosed, s.Dials)
			}
		})
	}
}
