package otel_test

import (
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestRealTrafficIsAccountedFor(t *testing.T) {
	t.Parallel()
	dsn := testserver.Postgres(t)
	r, observer := telemetry(t)
	db, err := partition.Open("pgx", dsn, partition.WithLogger(quiet), partition.WithName("orders"),
		partition.WithObserver(observer), partition.WithPool(workload.OLTP, partition.PoolConfig{
			MaxOpenConns: 2, MaxWaiting: 100, AcquireTimeout: time.Minute}))
	r.watch(db, err, observer)
	const callers, calls = 8, 20
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				r.mustExec(oltp, "SELECT 1")
			}
		})
	}
	all.Wait()
	held, err := take(db, 2)
	if err != nil {
		t.Fatal(err)
	}
	r.want(map[string]float64{"db.client.connection.count/used": 2, "db.client.connection.count/idle": 0})
	for _, c := range held {
		c.Close()
	}
	r.want(map[string]float64{
		"db.client.connection.count/used":  0,
		"db.client.connection.count/idle":  2,
		"db.client.connection.create_time": 2,
		"db.client.connection.wait_time":   callers*calls + 2,
		"db.client.connection.use_time":    callers*calls + 2,
		"db.client.connection.timeouts":    0,
	})
}

func take(db *sql.DB, n int) (conns []*sql.Conn, err error) {
	for range n {
		c, failed := db.Conn(oltp)
		conns, err = append(conns, c), errors.Join(err, failed)
	}
	return conns, err
}
