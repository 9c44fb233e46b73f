// Worker runs jobs from a River queue. Its jobs take a while and are many at night, and must not slow down what people
// wait for: they run in the batch pool. River's own statements (fetching, completing, electing a leader) run in a pool
// of their own, so that jobs which fill theirs do not stop the queue.
//
//	go run ./examples/worker --dsn postgres://…
//
// makes River's tables if they are not there, inserts a job, works until it is interrupted, and leaves the tables
// behind.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func main() {
	dsn := flag.String("dsn", "", "`URL` of a PostgreSQL database")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dsn); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dsn string) error {
	db, err := partition.Open("pgx", dsn, pools...)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrate(workload.With(ctx, workload.Admin), db); err != nil {
		return err
	}
	client, err := newClient(db, &countWorker{db: db})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	if _, err := client.Insert(ctx, countArgs{Table: "river_job"}, nil); err != nil {
		return err
	}
	<-client.Stopped() // ctx ends it, when the jobs that run are done
	return nil
}
