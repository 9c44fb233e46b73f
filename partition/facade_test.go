package partition_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// syncBuffer is a log that many goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func logged() (*syncBuffer, partition.Option) {
	var b syncBuffer
	return &b, partition.WithLogger(slog.New(slog.NewTextHandler(&b, nil)))
}

// P12
func TestCapOnTheHandleAtTheStartIsUndoneAndToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := logged()
		r := setup(t, fakedb.New(), opt)
		r.db.SetMaxOpenConns(1)
		giveBack := r.take(workload.Reporting, 3)
		r.mustExec(oltp, "ok")
		giveBack()
		r.db.SetMaxOpenConns(1)
		r.take(workload.OLTP, 5)()
		if n := strings.Count(log.String(), "WithBudget"); n != 1 {
			t.Errorf("told %d times:\n%s", n, log)
		}
	})
}

// P12
func TestCapOnTheHandleInUseIsUndoneAndNobodyHangs(t *testing.T) {
	t.Parallel()
	for _, cap := range []int{1, 12, 13} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), size(workload.OLTP, 20), partition.WithPool(workload.Reporting, partition.PoolConfig{MaxWaiting: 100}))
			first, second := r.take(workload.OLTP, 10), r.take(workload.Reporting, 3)
			r.db.SetMaxOpenConns(cap)
			var waiters sync.WaitGroup
			for i := range 20 {
				waiters.Go(func() {
					ctx, cancel := context.WithTimeout(in([]workload.Name{workload.OLTP, workload.Reporting}[i%2]), time.Minute)
					defer cancel()
					if i%5 == 4 {
						time.AfterFunc(10*ms, cancel)
					}
					_, err := r.db.ExecContext(ctx, "sleep 1ms")
					if err != nil && i%5 != 4 && !errors.Is(err, partition.ErrRejected) {
						t.Errorf("cap %d, waiter %d: %v", cap, i, err)
					}
				})
			}
			time.Sleep(20 * ms)
			first()
			second()
			waiters.Wait()
			synctest.Wait()
			r.idle()
			if got := r.db.Stats().MaxOpenConnections; cap < 13 && got != 0 {
				t.Errorf("the cap of %d is still there", got)
			}
		})
	}
}

// A handle capped at exactly what is open meets neither a Connect nor a surplus connection: the returns must notice.
func TestCapThatOnlyReturnsCanNoticeIsUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.fill(workload.OLTP, 1)
		r.db.SetMaxOpenConns(1)
		for range 20 {
			r.mustExec(oltp, "ok")
		}
		time.Sleep(10 * ms)
		if n := r.db.Stats().MaxOpenConnections; n != 0 {
			t.Errorf("still capped at %d", n)
		}
	})
}

func TestCapThatNotEvenReturnsNoticeIsUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.fill(workload.OLTP, 1)
		time.Sleep(time.Minute)
		r.db.SetMaxOpenConns(1)
		r.mustExec(oltp, "ok")
		time.Sleep(2 * time.Second)
		if n := r.db.Stats().MaxOpenConnections; n != 0 {
			t.Errorf("still capped at %d", n)
		}
	})
}

func TestCapWhileAllThatItAllowsAreHeldIsUndoneInASecond(t *testing.T) {
	t.Parallel()
	for name, cached := range map[string]bool{"newly made": false, "cached": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, fakedb.New())
				if cached {
					r.mustExec(reporting, "ok")
				}
				time.Sleep(time.Minute)
				report, err := r.db.Conn(reporting)
				if err != nil {
					t.Fatal(err)
				}
				defer report.Close()
				for range 3 {
					time.Sleep(time.Hour)
					r.db.SetMaxOpenConns(1)
					began := time.Now()
					r.mustExec(oltp, "ok") // it may be the holder's own, who would wait for himself
					if waited := time.Since(began); waited > time.Second+10*ms {
						t.Errorf("undone after %v", waited)
					}
				}
			})
		})
	}
}

// A cap is looked for by a timer that sets itself anew: an idle handle must not keep one going, and none does harm there.
func TestNothingLooksForACapWhileNothingIsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.take(workload.OLTP, 3)()
		time.Sleep(time.Minute)
		r.db.SetMaxOpenConns(5)
		time.Sleep(time.Hour)
		if n := r.db.Stats().MaxOpenConnections; n != 5 {
			t.Errorf("somebody has undone the cap: %d", n)
		}
	})
}

func TestLifetimeOnTheHandleRotatesNothingAndIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := logged()
		r := setup(t, fakedb.New(), opt)
		r.db.SetConnMaxLifetime(time.Second)
		for range 100 {
			r.mustExec(oltp, "ok")
			time.Sleep(200 * ms)
		}
		if n := strings.Count(log.String(), "SetConnMaxLifetime"); n != 1 {
			t.Errorf("told %d times", n)
		}
		if d := r.server.Stats().Dials; d != 1 {
			t.Errorf("%d dials", d)
		}
	})
}

func TestFewIdleConnectionsOnTheHandleCostNoPhysicalOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.db.SetMaxIdleConns(1)
		for range 20 {
			r.take(workload.OLTP, 10)()
		}
		if d := r.server.Stats().Dials; d != 10 {
			t.Errorf("%d dials", d)
		}
		time.Sleep(time.Second)
		before := r.db.Stats().MaxIdleClosed
		r.take(workload.OLTP, 10)()
		time.Sleep(time.Second)
		r.take(workload.OLTP, 10)()
		if closed := r.db.Stats().MaxIdleClosed; closed > before+10 {
			t.Errorf("virtual connections are still thrown away: %d more", closed-before)
		}
	})
}

func TestDriverOfTheHandleIsTheUnderlyingOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		if got := r.db.Driver(); got != r.server.Connector().Driver() {
			t.Errorf("%T", got)
		}
	})
}

func TestConnectorThatSeveralPoolsShareIsClosedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		replica := fakedb.New()
		c := replica.Connector()
		r := setup(t, fakedb.New(), partition.WithPoolConnector(workload.Reporting, c), partition.WithPoolConnector(workload.Batch, c))
		r.mustExec(reporting, "ok")
		r.mustExec(in(workload.Batch), "ok")
		r.db.Close()
		if n := replica.Stats().ConnectorsClosed; n != 1 {
			t.Errorf("closed %d times", n)
		}
	})
}

func TestPoolGivenTheSharedConnectorCountsAgainstTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakedb.New()
		c := s.Connector()
		opts := []partition.Option{partition.WithLogger(quiet), partition.WithBudget(17), partition.WithPoolConnector(workload.Batch, c)}
		if _, err := partition.OpenDB(c, append(opts, size(workload.OLTP, 16))...); err == nil {
			t.Error("it escaped the budget")
		}
		db, err := partition.OpenDB(c, opts...)
		if err != nil {
			t.Fatal(err)
		}
		db.Close()
		if n := s.Stats().ConnectorsClosed; n != 1 {
			t.Errorf("closed %d times", n)
		}
	})
}

// P13
func TestCloseWakesWhoWaitsWithTheErrorOfDatabaseSQL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plain := sql.OpenDB(fakedb.New().Connector())
		plain.Close()
		want := plain.Ping()

		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, AcquireTimeout: time.Hour}))
		giveBack := r.take(workload.OLTP, 1)
		waiter := make(chan error, 1)
		go func() {
			_, err := r.db.ExecContext(oltp, "ok")
			waiter <- err
		}()
		synctest.Wait()
		began := time.Now()
		if err := r.db.Close(); err != nil {
			t.Error(err)
		}
		if err := <-waiter; err != want || time.Since(began) != 0 {
			t.Errorf("the waiter got %v after %v, want %v", err, time.Since(began), want)
		}
		for _, entry := range entryPoints {
			if err := entry.call(oltp, r.db); err != want {
				t.Errorf("%s after Close: %v", entry.name, err)
			}
		}
		if _, err := r.pool(workload.OLTP).DB().Exec("ok"); err == nil {
			t.Error("Pool.DB works after Close")
		}
		giveBack()
		synctest.Wait()
		if n := r.server.Stats().Open; n != 0 {
			t.Errorf("%d connections left", n)
		}
		r.idle()
	})
}

// C29
func TestClosingTwiceClosesEachConnectorOnce(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"handle", "registry", "both"} {
		synctest.Test(t, func(t *testing.T) {
			replica := fakedb.New()
			r := setup(t, fakedb.New(), partition.WithPoolConnector(workload.Reporting, replica.Connector()))
			r.mustExec(oltp, "ok")
			r.mustExec(reporting, "ok")
			r.pool(workload.Batch).DB().Exec("ok")
			r.reg.Health(t.Context())
			closers := map[string][]func() error{"handle": {r.db.Close, r.db.Close}, "registry": {r.reg.Close, r.reg.Close}, "both": {r.reg.Close, r.db.Close}}
			for i, c := range closers[how] {
				if err := c(); err != nil {
					t.Errorf("%s, %d: %v", how, i, err)
				}
			}
			for _, s := range []*fakedb.Server{r.server, replica} {
				if st := s.Stats(); st.ConnectorsClosed != 1 || st.Open != 0 {
					t.Errorf("%s: connector closed %d times, %d connections open", how, st.ConnectorsClosed, st.Open)
				}
			}
			if _, ok := partition.RegistryOf(r.db); ok {
				t.Error("RegistryOf still knows a closed handle")
			}
		})
	}
}

func TestCloseDuringADialLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.server.On(fakedb.Dial, fakedb.Delay(50*ms))
		got := make(chan error, 1)
		go func() {
			_, err := r.db.ExecContext(oltp, "ok")
			got <- err
		}()
		time.Sleep(10 * ms)
		r.db.Close()
		if err := <-got; err == nil || !contains(err.Error(), "closed") {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Second)
		if n := r.server.Stats().Open; n != 0 {
			t.Errorf("%d connections left", n)
		}
	})
}

// panicker is an argument that panics when it is converted.
// P15
func TestRawHandsOutTheDriversOwnConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		plain := sql.OpenDB(r.server.Connector())
		defer plain.Close()
		for _, db := range []*sql.DB{plain, r.db} {
			conn, err := db.Conn(oltp)
			if err != nil {
				t.Fatal(err)
			}
			mine := errors.New("mine")
			var id int
			if err := partition.Raw(conn, func(c any) error { id = fakedb.ConnID(c); return mine }); err != mine || id == 0 {
				t.Errorf("connection %d, error %v", id, err)
			}
			conn.Close()
		}
		if err := partition.Raw(nil, nil); err == nil {
			t.Error("nil was accepted")
		}
	})
}

// C24
func TestErrorsOfConnectionsAreTriedAsOftenAsPlain(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"badconn", "badconn wrapped", "error", "ok"} {
		for _, st := range statements {
			synctest.Test(t, func(t *testing.T) {
				attempts := func(open func(*fakedb.Server) *sql.DB) (int, error) {
					s := fakedb.New()
					db := open(s)
					defer db.Close()
					err := st.run(oltp, db, text)
					n := 0
					for _, c := range s.Calls(fakedb.Exec, fakedb.Query) {
						if c.Text == text {
							n++
						}
					}
					return n, err
				}
				wantN, want := attempts(func(s *fakedb.Server) *sql.DB { return sql.OpenDB(s.Connector()) })
				gotN, got := attempts(func(s *fakedb.Server) *sql.DB { return setup(t, s).db })
				if gotN != wantN || (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
					t.Errorf("%s %q: plain %d attempts and %v, partitioned %d and %v", st.name, text, wantN, want, gotN, got)
				}
			})
		}
	}
}

// Exactly one Released for each AcquireDone without error, and every event names its pool.
