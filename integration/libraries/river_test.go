package libraries

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// riverTrigger has the server write down what River does to its jobs, and where that runs.
const riverTrigger = `
CREATE TABLE river_log (op text, state text, here text);
CREATE FUNCTION river_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO river_log VALUES (TG_OP, NEW.state, current_setting('application_name'));
	RETURN NEW;
END $$;
CREATE TRIGGER river_note BEFORE INSERT OR UPDATE ON river_job FOR EACH ROW EXECUTE FUNCTION river_note();`

type sumArgs struct {
	Numbers []int `json:"numbers"`
}

func (sumArgs) Kind() string { return "sum" }

// sumWorker works on a handle of its own choice, as an application's workers do.
type sumWorker struct {
	river.WorkerDefaults[sumArgs]
	db *sql.DB

	mu   sync.Mutex // guards what follows
	sums []int
	here []string
}

func (w *sumWorker) Work(ctx context.Context, job *river.Job[sumArgs]) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var here string
	if err := tx.QueryRowContext(ctx, "SELECT current_setting('application_name')").Scan(&here); err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riverdatabasesql.Driver](ctx, tx, job); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := 0
	for _, n := range job.Args.Numbers {
		sum += n
	}
	w.sums = append(w.sums, sum)
	w.here = append(w.here, here)
	return tx.Commit()
}

// seen returns what was worked, in order.
func (w *sumWorker) seen() (sums []int, here []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.sums)), slices.Clone(w.here)
}

// riverMigrate returns how many migrations there were to do. Only the first call finds any.
func riverMigrate(tb testing.TB, ctx context.Context, db *sql.DB) int {
	tb.Helper()
	m, err := rivermigrate.New(riverdatabasesql.New(db), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		tb.Fatal(err)
	}
	res, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if len(res.Versions) > 0 {
		if _, err := db.ExecContext(ctx, riverTrigger); err != nil {
			tb.Fatal(err)
		}
	}
	return len(res.Versions)
}

// riverClient starts a client that works jobs on this handle, under this context.
func riverClient(tb testing.TB, ctx context.Context, db *sql.DB, w *sumWorker) *river.Client[*sql.Tx] {
	tb.Helper()
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	client, err := river.NewClient(riverdatabasesql.New(db), &river.Config{
		FetchPollInterval: 100 * time.Millisecond,
		Logger:            quiet,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}},
		Workers:           workers,
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := client.Start(ctx); err != nil {
		tb.Fatal(err)
	}
	return client
}

func TestRiverWorksAsOnAPlainHandle(t *testing.T) {
	on(t, []server{postgres}, func(t *testing.T, s server) {
		runs("github.com/riverqueue/river", "github.com/riverqueue/river/riverdriver/riverdatabasesql")
		exercise(t, s, func(tb testing.TB, db *sql.DB) job {
			return func(ctx context.Context, j *journal) {
				// Its tables stay: pgx's own cache of statements gives "cached plan must not change result type" on the
				// first use after they are made anew, on every connection that knew them, partitioned or not.
				riverMigrate(j, ctx, db)
				riverJob(ctx, db, j)
				_, err := db.ExecContext(ctx, "TRUNCATE river_job, river_log RESTART IDENTITY")
				j.must(err)
			}
		})
	})
}

func riverJob(ctx context.Context, db *sql.DB, j *journal) {
	w := &sumWorker{db: db}
	client := riverClient(j, ctx, db, w)
	defer client.StopAndCancel(ctx)
	riverInserts(j, ctx, db, client)
	riverDone(j, w, 6)
	j.must(client.Stop(ctx))
	sums, here := w.seen()
	j.got("sums", sums)
	j.places = append(j.places, here...)
	for entry, here := range riverLog(j, ctx, db) {
		j.got("log", entry)
		j.places = append(j.places, here...)
	}
	slices.Sort(j.lines) // what was done is the same, not in which order
	jobs, err := client.JobList(ctx, river.NewJobListParams())
	j.must(err)
	for _, job := range jobs.Jobs {
		j.got("job", job.ID, job.State, job.Attempt, string(job.EncodedArgs))
	}
}

// riverInserts inserts six jobs, and one that is rolled back.
func riverInserts(tb testing.TB, ctx context.Context, db *sql.DB, client *river.Client[*sql.Tx]) {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	_, err := client.Insert(ctx, sumArgs{[]int{1, 2}}, nil)
	must(err)
	_, err = client.InsertMany(ctx, []river.InsertManyParams{{Args: sumArgs{[]int{3}}}, {Args: sumArgs{[]int{4, 5}}}, {Args: sumArgs{}}})
	must(err)
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		tx, err := db.BeginTx(ctx, nil)
		must(err)
		_, err = client.InsertTx(ctx, tx, sumArgs{[]int{100}}, nil)
		must(err)
		must(end(tx))
	}
	_, err = client.Insert(ctx, sumArgs{[]int{1000}}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
	must(err)
}

func riverDone(tb testing.TB, w *sumWorker, n int) {
	tb.Helper()
	eventually(tb, func() string {
		if sums, _ := w.seen(); len(sums) < n {
			return fmt.Sprintf("%d of %d jobs done", len(sums), n)
		}
		return ""
	})
}

// riverLog returns where each of the server's entries was made, by what they say.
func riverLog(tb testing.TB, ctx context.Context, db *sql.DB) map[string][]string {
	tb.Helper()
	rows, err := db.QueryContext(ctx, "SELECT op || ' ' || state, here FROM river_log ORDER BY op, state")
	if err != nil {
		tb.Fatal(err)
	}
	defer rows.Close()
	log := map[string][]string{}
	for rows.Next() {
		var entry, here string
		if err := rows.Scan(&entry, &here); err != nil {
			tb.Fatal(err)
		}
		log[entry] = append(log[entry], here)
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	return log
}

func TestRiverOnTheHandleOfAPoolWorksThereWhoeverInserts(t *testing.T) {
	on(t, []server{postgres}, func(t *testing.T, s server) {
		h := setup(t, s)
		home := s.homesOf(t, h)
		if riverMigrate(t, in(workload.Admin), h.db) == 0 {
			t.Error("no migrations")
		}
		w := &sumWorker{db: h.pool(workload.Batch).DB()}
		client := riverClient(t, context.Background(), w.db, w)
		defer client.StopAndCancel(context.Background())
		insertOnly, err := river.NewClient(riverdatabasesql.New(h.db), &river.Config{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		riverInserts(t, in(workload.OLTP), h.db, insertOnly)
		riverDone(t, w, 6)
		if err := client.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		_, worked := w.seen()
		log := riverLog(t, in(workload.OLTP), h.db)
		for what, check := range map[string]struct {
			places []string
			pool   workload.Name
			n      int
		}{
			"worked":    {worked, workload.Batch, 6},
			"inserted":  {log["INSERT available"], workload.OLTP, 6},
			"fetched":   {log["UPDATE running"], workload.Batch, 6},
			"completed": {log["UPDATE completed"], workload.Batch, 6},
		} {
			if len(check.places) < check.n {
				t.Errorf("%s: %d, want %d", what, len(check.places), check.n)
			}
			for _, here := range check.places {
				if home(here) != string(check.pool) {
					t.Errorf("%s in %q, want %s", what, home(here), check.pool)
				}
			}
		}
	})
}
