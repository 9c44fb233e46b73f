package partition_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestEveryEntryPointGivesTheTypedError(t *testing.T) {
	t.Parallel()
	for _, entry := range entryPoints {
		t.Run(entry.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, fakedb.New(), size(workload.Reporting, 1))
				giveBack := r.take(workload.Reporting, 1)
				began := time.Now()
				err := entry.call(reporting, r.db)
				e := rejection(t, err)
				if !errors.Is(err, partition.ErrRejected) || !errors.Is(err, partition.ErrAcquireTimeout) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v Is the wrong things", err)
				}
				if e.Workload != workload.Reporting || e.Reason != partition.ReasonAcquireTimeout || e.InUse != 1 || e.MaxOpenConns != 1 || !e.Timeout() {
					t.Errorf("%+v", e)
				}
				if took := time.Since(began); took != 50*ms || e.Waited != took {
					t.Errorf("took %v, says %v, want 50ms", took, e.Waited)
				}
				if e.RetryAfter() <= 0 {
					t.Errorf("RetryAfter %v", e.RetryAfter())
				}
				giveBack()
				if err := entry.call(reporting, r.db); err != nil {
					t.Errorf("after the release: %v", err)
				}
				synctest.Wait()
				r.idle()
			})
		})
	}
}

func TestFullQueueRejectsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, MaxWaiting: partition.NoQueue}))
		defer r.take(workload.OLTP, 1)()
		began := time.Now()
		_, err := r.db.ExecContext(oltp, "ok")
		if e := rejection(t, err); !errors.Is(err, partition.ErrQueueFull) || e.Waited != 0 || time.Since(began) != 0 {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
	})
}

func TestPoolsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		defer r.take(workload.Reporting, 3)()
		began := time.Now()
		for range 100 {
			r.mustExec(oltp, "ok")
		}
		if s := r.stats(workload.OLTP); time.Since(began) != 0 || s.Waited != 0 || s.PeakInUse != 1 {
			t.Fatalf("oltp waited: %+v", s)
		}
	})
}

// C13
func TestCallersDeadlineAndAcquireTimeoutAreToldApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 1))
		defer r.take(workload.OLTP, 1)()
		ctx, cancel := context.WithTimeout(oltp, 5*time.Second)
		defer cancel()
		_, err := r.db.ExecContext(ctx, "ok")
		if !errors.Is(err, partition.ErrAcquireTimeout) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with 5 s to go: %v", err)
		}
		ctx, cancel = context.WithTimeout(oltp, 50*ms)
		defer cancel()
		_, err = r.db.ExecContext(ctx, "ok")
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, partition.ErrAcquireTimeout) || errors.Is(err, partition.ErrRejected) {
			t.Errorf("with 50 ms to go: %v", err)
		}
		if e := rejection(t, err); e.Waited != 50*ms || e.Reason != partition.ReasonCallerGaveUp || !e.Timeout() {
			t.Errorf("%+v", e)
		}
		if s := r.stats(workload.OLTP); s.RejectedTimeout != 1 || s.CallerGaveUp != 1 || s.WaitTime != 150*ms || s.Waited != 2 {
			t.Errorf("%+v", s)
		}
		if s := r.stats(workload.Reporting); s.Waited != 0 || s.RejectedTimeout != 0 {
			t.Errorf("reporting counted it, too: %+v", s)
		}
	})
}

// C01: an acquire timeout must not go on running once there is a connection.
func TestAcquireTimeoutEndsWithTheAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		rows, err := r.db.QueryContext(oltp, "rows 5")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * ms)
		n := 0
		for rows.Next() {
			n++
		}
		if n != 5 || rows.Err() != nil {
			t.Errorf("%d rows, %v", n, rows.Err())
		}
		tx, err := r.db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * ms)
		if _, err := tx.Exec("ok"); err != nil {
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	})
}

// C12
func TestNestedAcquireFailsInBoundedTimeAndTheTransactionGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 1))
		tx, err := r.db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.db.ExecContext(oltp, "ok"); rejection(t, err).Waited != 100*ms {
			t.Errorf("%v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	})
}

func TestTagChoosesThePoolAndATransactionKeepsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		tx, err := r.db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(reporting, "ok"); err != nil {
			t.Fatal(err)
		}
		if s := r.stats(workload.Reporting); s.Acquired != 0 {
			t.Error("a statement in an oltp transaction went to reporting")
		}
		if calls := r.server.Calls(fakedb.Begin, fakedb.Exec); len(connIDs(calls)) != 1 {
			t.Errorf("the transaction ran on several connections: %v", calls)
		}
		tx.Rollback()
		r.mustExec(context.Background(), "ok")
		if s := r.stats(workload.OLTP); s.Acquired != 2 {
			t.Errorf("untagged work did not go to oltp: %+v", s)
		}
	})
}

func TestUnknownAndMissingTagsAreTheCallersBugs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithRequiredTag())
		for _, entry := range entryPoints {
			err := entry.call(in("etl"), r.db)
			if !errors.Is(err, partition.ErrUnknownWorkload) || errors.Is(err, partition.ErrRejected) {
				t.Errorf("%s with an unknown tag: %v", entry.name, err)
			}
			err = entry.call(context.Background(), r.db)
			if !errors.Is(err, partition.ErrUntagged) || errors.Is(err, partition.ErrRejected) {
				t.Errorf("%s without a tag: %v", entry.name, err)
			}
		}
	})
}

func TestFallbackTakesUnknownTags(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithFallback(workload.Batch))
		r.mustExec(in("etl"), "ok")
		if s := r.stats(workload.Batch); s.Acquired != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestPauseIsAnOperatorsSwitch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		tx, err := r.db.BeginTx(reporting, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.pool(workload.Reporting).Pause()
		for _, entry := range entryPoints {
			if err := entry.call(reporting, r.db); !errors.Is(err, partition.ErrPaused) || !errors.Is(err, partition.ErrRejected) {
				t.Errorf("%s: %v", entry.name, err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Errorf("what had begun was disturbed: %v", err)
		}
		r.mustExec(oltp, "ok")
		r.pool(workload.Reporting).Resume()
		r.mustExec(reporting, "ok")
	})
}

func TestResizeGrowsAtOnceAndShrinksAsConnectionsReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 1))
		p := r.pool(workload.OLTP)
		giveBack := r.take(workload.OLTP, 1)
		waited := make(chan error)
		go func() {
			_, err := r.db.ExecContext(oltp, "ok")
			waited <- err
		}()
		synctest.Wait()
		if err := p.Resize(4); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; err != nil {
			t.Fatalf("growing did not serve the waiter: %v", err)
		}
		more := r.take(workload.OLTP, 3)
		if err := p.Resize(2); err != nil {
			t.Fatal(err)
		}
		giveBack()
		more()
		synctest.Wait()
		if s := p.Stats(); s.Open != 2 || s.MaxOpenConns != 2 || r.server.Stats().Open != 2 || p.Config().MaxOpenConns != 2 {
			t.Errorf("after shrinking: %+v", s)
		}
		if err := p.Resize(1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := p.Stats(); s.Open != 1 || s.Idle != 1 {
			t.Errorf("idle connections past the size stayed: %+v", s)
		}
		if err := p.Resize(0); err == nil {
			t.Error("size 0 was accepted")
		}
	})
}

func TestResizeKeepsToTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithBudget(17))
		if err := r.pool(workload.OLTP).Resize(11); err == nil {
			t.Error("a size past the budget was accepted")
		}
		if err := r.pool(workload.Batch).Resize(1); err != nil {
			t.Fatal(err)
		}
		if err := r.pool(workload.OLTP).Resize(11); err != nil {
			t.Error(err)
		}
	})
}

func TestCapIsNeverExceededOnTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 3, MaxWaiting: 1000, AcquireTimeout: time.Minute}))
		r.server.On(fakedb.Dial, fakedb.Delay(20*ms))
		r.server.On(fakedb.CloseConn, fakedb.Delay(50*ms))
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				text := "sleep 5ms"
				if i%7 == 0 {
					text = "badconn"
				}
				r.db.ExecContext(oltp, text)
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		if s := r.server.Stats(); s.PeakOpen > 3 {
			t.Errorf("%d connections on the server, the cap is 3", s.PeakOpen)
		}
		r.idle()
	})
}

func TestPoolDBRunsEverythingInItsPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		p := r.pool(workload.Batch)
		db := p.DB()
		if db != p.DB() {
			t.Error("not the same pointer each time")
		}
		if got, ok := partition.RegistryOf(db); !ok || got != r.reg {
			t.Error("RegistryOf does not know it")
		}
		for _, ctx := range []context.Context{context.Background(), oltp, in("no such pool")} {
			if _, err := db.ExecContext(ctx, "ok"); err != nil {
				t.Error(err)
			}
		}
		if s := p.Stats(); s.Acquired != 3 || r.stats(workload.OLTP).Acquired != 0 {
			t.Errorf("%+v", s)
		}
		if err := db.Close(); err == nil {
			t.Error("Close was not refused")
		}
		if _, err := p.DB().Exec("ok"); err != nil {
			t.Errorf("after the refused Close: %v", err)
		}
		r.mustExec(in(workload.Batch), "ok")
	})
}

func ExampleAcquireError() {
	db, err := partition.OpenDB(fakedb.New().Connector(), size(workload.Reporting, 1))
	if err != nil {
		panic(err)
	}
	defer db.Close()
	ctx := workload.With(context.Background(), workload.Reporting)
	running, _ := db.BeginTx(ctx, nil)
	defer running.Rollback()

	_, err = db.ExecContext(ctx, "ok")
	var rejected *partition.AcquireError
	if errors.As(err, &rejected) {
		fmt.Println("pool:", rejected.Workload)
		fmt.Println("reason:", rejected.Reason)
		fmt.Println("in use:", rejected.InUse, "of", rejected.MaxOpenConns)
		fmt.Println("503:", errors.Is(err, partition.ErrRejected))
	}
	// Output:
	// pool: reporting
	// reason: acquire_timeout
	// in use: 1 of 1
	// 503: true
}

// A retry belongs outside: while it backs off it holds no permit and no connection.
func Example_retryOutside() {
	db, err := partition.OpenDB(fakedb.New().Connector(), size(workload.Reporting, 1))
	if err != nil {
		panic(err)
	}
	defer db.Close()
	reg, _ := partition.RegistryOf(db)
	pool, _ := reg.Pool(workload.Reporting)
	ctx := workload.With(context.Background(), workload.Reporting)
	running, _ := db.BeginTx(ctx, nil)

	for attempt := 1; ; attempt++ {
		_, err := db.ExecContext(ctx, "ok")
		if err == nil {
			fmt.Println("served at attempt", attempt)
			return
		}
		var rejected *partition.AcquireError
		if !errors.As(err, &rejected) {
			panic(err)
		}
		fmt.Println("rejected; in use", pool.Stats().InUse, "by the one that runs, waiting", pool.Stats().Waiting)
		running.Rollback()
		time.Sleep(rejected.RetryAfter())
	}
	// Output:
	// rejected; in use 1 by the one that runs, waiting 0
	// served at attempt 2
}
