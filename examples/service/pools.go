package main

import (
	"context"
	"database/sql"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// openPools is the two innermost layers: how many connections each kind of work may have, and how long its statements
// may run.
func openPools(driver, dsn string, more ...partition.Option) (*sql.DB, error) {
	return partition.Open(driver, dsn, append([]partition.Option{
		partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 8, StatementTimeout: time.Second}),
		partition.WithPool(workload.Reporting, partition.PoolConfig{
			MaxOpenConns: 2, MaxWaiting: 2, AcquireTimeout: 100 * time.Millisecond, StatementTimeout: 10 * time.Second,
		}),
		partition.WithoutPool(workload.Batch),
	}, more...)...)
}

// sqliteFile is the data source name of a file whose readers do not wait for each other.
func sqliteFile(path string) string {
	return "file:" + path + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)"
}

// tables leaves alone what is there already.
var tables = []string{
	"CREATE TABLE IF NOT EXISTS example_users (name VARCHAR(40) PRIMARY KEY)",
	"CREATE TABLE IF NOT EXISTS example_orders (id INTEGER PRIMARY KEY, buyer VARCHAR(40), cents INTEGER)",
	"INSERT INTO example_users VALUES ('ada'), ('grace'), ('linus') ON CONFLICT DO NOTHING",
	"INSERT INTO example_orders VALUES (1, 'ada', 1999), (2, 'grace', 500), (3, 'grace', 2500) ON CONFLICT DO NOTHING",
}

// seed is maintenance, and runs in the admin pool, which has no statement timeout.
func seed(ctx context.Context, db *sql.DB) error {
	ctx = workload.With(ctx, workload.Admin)
	for _, statement := range tables {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
