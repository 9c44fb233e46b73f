package integration

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// contextless are calls that database/sql gives no context, so that nothing but the connection's end ends them.
var contextless = map[string]func(t *testing.T, tx *sql.Tx, rows string) (hangs func()){
	"Commit": func(t *testing.T, tx *sql.Tx, _ string) func() {
		return func() { tx.Commit() }
	},
	"Rollback": func(t *testing.T, tx *sql.Tx, _ string) func() {
		return func() { tx.Rollback() }
	},
	"Rows.Close": func(t *testing.T, tx *sql.Tx, query string) func() {
		rows, err := tx.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		if !rows.Next() {
			t.Fatal(rows.Err())
		}
		return func() { rows.Close(); tx.Rollback() }
	},
}

// The race detector watches: no driver says that its Close may be called beside another call, and that of
// go-sql-driver/mysql may not.
func TestCallWithoutContextEndsAlthoughTheNetworkHangs(t *testing.T) {
	on(t, slices.Concat(serverTargets, tracedTargets), func(t *testing.T, tg target) {
		query := "SELECT generate_series(1, 3000000)"
		if tg.arg == "?" {
			query = "SELECT seq FROM seq_1_to_3000000"
		}
		for name, begin := range contextless {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dsn := tg.dsn(t)
				proxy := testserver.NewProxy(t, testserver.AddrOf(dsn))
				r := setupOn(t, tg, testserver.WithAddr(dsn, proxy.Addr()),
					pool(workload.OLTP, partition.PoolConfig{StatementTimeout: 200 * ms, AcquireTimeout: 10 * time.Second}))
				tx, err := r.db.Begin()
				if err != nil {
					t.Fatal(err)
				}
				hangs := begin(t, tx, query)
				proxy.Hang()
				began := time.Now()
				hangs()
				between(t, name, time.Since(began), 0, 5*time.Second)
				proxy.Resume()
				mustAnswer(t, r.db)
			})
		}
	})
}
