package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// queue is the pool of River's own statements, which are short.
const queue workload.Name = "queue"

var pools = []partition.Option{
	partition.WithPool(workload.Batch, partition.PoolConfig{MaxOpenConns: 4}),
	partition.WithPool(queue, partition.PoolConfig{MaxOpenConns: 3, AcquireTimeout: 5 * time.Second}),
	partition.WithoutPool(workload.Reporting),
}

// migrate makes River's tables. Its context is to be tagged: DDL may take longer than requests are given.
func migrate(ctx context.Context, db *sql.DB) error {
	migrator, err := rivermigrate.New(riverdatabasesql.New(db), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// newClient gives River the queue's pool as a handle: whatever context it works under, its statements run there. The
// jobs keep the whole handle and follow their tag. There are as many workers as jobs have connections.
func newClient(db *sql.DB, jobs *countWorker) (*river.Client[*sql.Tx], error) {
	own, err := poolOf(db, queue)
	if err != nil {
		return nil, err
	}
	batch, err := poolOf(db, workload.Batch)
	if err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, jobs)
	return river.NewClient(riverdatabasesql.New(own.DB()), &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: batch.Config().MaxOpenConns}},
		Workers:           workers,
		Middleware:        []rivertype.Middleware{river.WorkerMiddlewareFunc(asBatch)},
		FetchPollInterval: 200 * time.Millisecond, // database/sql cannot LISTEN
	})
}

func poolOf(db *sql.DB, name workload.Name) (*partition.Pool, error) {
	reg, ok := partition.RegistryOf(db)
	if !ok {
		return nil, errors.New("the handle has no pools")
	}
	pool, ok := reg.Pool(name)
	if !ok {
		return nil, fmt.Errorf("no pool %q", name)
	}
	return pool, nil
}

// asBatch runs every job in the batch pool. One that is refused there has not failed: it is put off for as long as the
// pool asks, which uses up none of its attempts.
//
// That is right for jobs which can be run again from the start, as all jobs should be: a second statement can be refused
// after a first has taken effect.
func asBatch(ctx context.Context, _ *rivertype.JobRow, work func(context.Context) error) error {
	err := work(workload.With(ctx, workload.Batch))
	var refused *partition.AcquireError
	if errors.Is(err, partition.ErrRejected) && errors.As(err, &refused) {
		return river.JobSnooze(refused.RetryAfter())
	}
	return err
}
