package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// openShared opens one pool for everything.
func openShared(driver, dsn string, s settings) (*sql.DB, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(s.connections)
	db.SetMaxIdleConns(s.connections) // or it would dial all the time
	return db, nil
}

// openPartitions opens one pool for logins and one for reports, of the same
// size together.
func openPartitions(driver, dsn string, s settings) (*sql.DB, error) {
	return partition.Open(driver, dsn,
		partition.WithBudget(s.connections),
		partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: s.oltp()}),
		partition.WithPool(workload.Reporting, partition.PoolConfig{MaxOpenConns: s.reporting}),
		partition.WithoutPool(workload.Batch),
		partition.WithoutPool(workload.Admin),
		partition.WithLogger(slog.New(slog.DiscardHandler)))
}

// checkDSN returns an error, without the password, if the driver cannot parse
// dsn. It dials nothing.
func checkDSN(driver, dsn string) error {
	db, err := openPartitions(driver, dsn, defaults)
	if err != nil {
		return err
	}
	return db.Close()
}

// asLogin and asReport tag the context, as a service's middleware does.
func asLogin(ctx context.Context) context.Context  { return workload.With(ctx, workload.OLTP) }
func asReport(ctx context.Context) context.Context { return workload.With(ctx, workload.Reporting) }

// warm opens n connections, so that what is measured later is no dial. The first
// that cannot be opened ends the attempt.
func warm(ctx context.Context, db *sql.DB, n int) error {
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	limited, giveUp := context.WithCancelCause(limited)
	defer giveUp(nil)
	conns := make([]*sql.Conn, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			conn, err := persist(limited, db)
			if conns[i] = conn; err != nil {
				giveUp(err)
			}
		})
	}
	all.Wait()
	for _, conn := range conns {
		if conn != nil {
			conn.Close()
		}
	}
	if err := context.Cause(limited); err != nil {
		return fmt.Errorf("cannot open %d connections: %w", n, err)
	}
	return nil
}

// persist gets a connection even if that takes longer than the pool lets a
// caller wait: the dial goes on, and its connection is there later.
func persist(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	for {
		conn, err := db.Conn(ctx)
		if !errors.Is(err, partition.ErrRejected) || !sleep(ctx, 10*time.Millisecond) {
			return conn, err
		}
	}
}
