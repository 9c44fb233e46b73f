package main

import (
	"context"
	"database/sql"

	"github.com/riverqueue/river"
)

// countArgs is a job: count the rows of a table.
type countArgs struct {
	Table string `json:"table"`
}

// Kind is the name of the job in the queue.
func (countArgs) Kind() string { return "count" }

// countWorker does it. It knows nothing of pools, and passes its context on.
type countWorker struct {
	river.WorkerDefaults[countArgs]
	db *sql.DB
}

// Work records the number with the job, and in which pool it was counted: PostgreSQL shows it as application_name.
func (w *countWorker) Work(ctx context.Context, job *river.Job[countArgs]) error {
	var result struct {
		Rows int64  `json:"rows"`
		Pool string `json:"pool"`
	}
	const query = "SELECT n_live_tup, current_setting('application_name') FROM pg_stat_user_tables WHERE relname = $1"
	if err := w.db.QueryRowContext(ctx, query, job.Args.Table).Scan(&result.Rows, &result.Pool); err != nil {
		return err
	}
	return river.RecordOutput(ctx, result)
}
