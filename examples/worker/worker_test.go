package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/sqlbulkhead/sqlbulkhead/examples/internal/scratch"
	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }

// rig is a worker that runs, and what it tells.
type rig struct {
	*testing.T
	db     *sql.DB
	client *river.Client[*sql.Tx]
	events <-chan *river.Event
}

func setup(t *testing.T) *rig {
	t.Helper()
	patient := partition.PoolConfig{AcquireTimeout: 30 * time.Second}
	db, err := partition.Open("pgx", scratch.Postgres(t), append(append([]partition.Option{}, pools...),
		partition.WithLogger(slog.New(slog.DiscardHandler)),
		partition.WithPool(queue, patient), partition.WithPool(workload.Admin, patient),
		partition.WithPool(workload.Batch, partition.PoolConfig{AcquireTimeout: 30 * time.Second, MaxWaiting: partition.NoQueue}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := migrate(workload.With(t.Context(), workload.Admin), db); err != nil {
		t.Fatal(err)
	}
	client, err := newClient(db, &countWorker{db: db})
	if err != nil {
		t.Fatal(err)
	}
	events, unsubscribe := client.Subscribe(river.EventKindJobCompleted, river.EventKindJobSnoozed, river.EventKindJobFailed)
	t.Cleanup(unsubscribe)
	if err := client.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &rig{t, db, client, events}
}

func (r *rig) insert() {
	r.Helper()
	if _, err := r.client.Insert(r.Context(), countArgs{Table: "river_job"}, nil); err != nil {
		r.Fatal(err)
	}
}

// await returns the job of the next event, which must be of that kind.
func (r *rig) await(kind river.EventKind) *rivertype.JobRow {
	r.Helper()
	select {
	case e := <-r.events:
		if e.Kind != kind {
			r.Fatalf("%s: %+v", e.Kind, e.Job.Errors)
		}
		return e.Job
	case <-time.After(time.Minute):
		r.Fatalf("no %s", kind)
		return nil
	}
}

func TestJobsRunInTheBatchPoolAndTheQueueInItsOwn(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.insert()
	job := r.await(river.EventKindJobCompleted)
	var output struct{ Pool string }
	if err := json.Unmarshal(job.Output(), &output); err != nil || !strings.HasSuffix(output.Pool, "/batch") {
		t.Errorf("the job ran as %q, %v", output.Pool, err)
	}
	batch, own := r.stats(workload.Batch), r.stats(queue)
	if batch.Acquired != 1 || own.Acquired == 0 {
		t.Errorf("batch acquired %d times, the queue %d", batch.Acquired, own.Acquired)
	}
	if oltp := r.stats(workload.OLTP); oltp.Acquired != 0 {
		t.Errorf("oltp acquired %d times", oltp.Acquired)
	}
}

func TestRefusedJobIsPutOffAndLosesNoAttempt(t *testing.T) {
	t.Parallel()
	r := setup(t)
	giveBack := r.fillBatch()
	r.insert()
	r.await(river.EventKindJobSnoozed) // the queue goes on while jobs have no connection
	giveBack()
	job := r.await(river.EventKindJobCompleted)
	if job.Attempt != 1 || len(job.Errors) != 0 {
		t.Errorf("attempt %d, errors %v", job.Attempt, job.Errors)
	}
}

// fillBatch takes every connection that jobs may have.
func (r *rig) fillBatch() (giveBack func()) {
	r.Helper()
	var conns []*sql.Conn
	for range r.stats(workload.Batch).MaxOpenConns {
		conn, err := r.db.Conn(workload.With(r.Context(), workload.Batch))
		if err != nil {
			r.Fatal(err)
		}
		conns = append(conns, conn)
	}
	return func() {
		for _, conn := range conns {
			conn.Close()
		}
	}
}

func (r *rig) stats(name workload.Name) partition.Stats {
	r.Helper()
	pool, err := poolOf(r.db, name)
	if err != nil {
		r.Fatal(err)
	}
	return pool.Stats()
}
