package partition_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestAppliedStatementTimeoutReachesTheNextBorrowerOfAnIdleConnection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server func() *fakedb.Server
		opts   []partition.Option
		from   time.Duration
		to     time.Duration
		dials  int
	}{
		"tighter on the server":  {func() *fakedb.Server { return postgresLike("") }, []partition.Option{asPostgres}, time.Second, 200 * ms, 1},
		"looser on the server":   {func() *fakedb.Server { return postgresLike("") }, []partition.Option{asPostgres}, 50 * ms, 200 * ms, 2},
		"tighter by guard":       {func() *fakedb.Server { return fakedb.New() }, nil, time.Second, 200 * ms, 1},
		"looser by guard":        {func() *fakedb.Server { return fakedb.New() }, nil, 50 * ms, 200 * ms, 1},
		"where there was none":   {func() *fakedb.Server { return fakedb.New() }, nil, partition.NoTimeout, 200 * ms, 1},
		"no reset in the driver": {func() *fakedb.Server { return fakedb.New(fakedb.Without(fakedb.SessionResetter)) }, nil, time.Second, 200 * ms, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, c.server(), append(c.opts, partition.WithConfig(partition.Config{Pools: pools{
					workload.OLTP: {StatementTimeout: c.from},
				}}))...)
				r.mustExec(oltp, "ok")
				r.apply(workload.OLTP, partition.PoolConfig{StatementTimeout: c.to})
				r.mustExec(oltp, "sleep 190ms")
				synctest.Wait()
				if n := r.server.Stats().Dials; n != c.dials {
					t.Errorf("%d dials, want %d", n, c.dials)
				}
				began := time.Now()
				if _, err := r.db.ExecContext(oltp, "sleep 2s"); err == nil || time.Since(began) != 200*ms {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		})
	}
}

func TestConnectionsAreReplacedForALooserSettingWithinTheCapAndTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, postgresLike(""), asPostgres, size(workload.OLTP, 5))
		r.fill(workload.OLTP, 5)
		r.server.On(fakedb.Dial, fakedb.Delay(60*ms))
		r.server.On(fakedb.CloseConn, fakedb.Delay(10*ms))
		r.apply(workload.OLTP, partition.PoolConfig{StatementTimeout: time.Hour})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { r.mustExec(oltp, "sleep 5ms") })
		}
		all.Wait()
		synctest.Wait()
		if s := r.server.Stats(); s.PeakOpen > 5 || s.Dials != 10 {
			t.Errorf("%d connections at once, %d dials", s.PeakOpen, s.Dials)
		}
	})
}

// The borrower set a limit of its own. The session is not to end up with the tighter of that and the new one.
func TestAppliedSettingsFollowWhatABorrowerChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, postgresLike(""), asPostgres)
		r.mustExec(oltp, "set statement_timeout=1ms")
		r.apply(workload.OLTP, partition.PoolConfig{StatementTimeout: 200 * ms})
		r.server.ClearLog()
		r.mustExec(oltp, "ok")
		var texts []string
		for _, c := range r.server.Calls(fakedb.Exec) {
			texts = append(texts, c.Text)
		}
		if len(texts) != 3 || texts[0] != "set statement_timeout=5s" || texts[1] != "set statement_timeout=200ms" {
			t.Errorf("between the two borrowers: %q", texts)
		}
	})
}

func TestConnectionThatWasDialedBeforeAnApplyIsSetUpAfterIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, postgresLike(""), asPostgres)
		r.server.On(fakedb.Dial, fakedb.Delay(time.Second)) // outlasts its caller, and lands
		if _, err := r.db.ExecContext(oltp, "ok"); !errors.Is(err, partition.ErrAcquireTimeout) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		r.apply(workload.OLTP, partition.PoolConfig{StatementTimeout: 200 * ms})
		began := time.Now()
		if _, err := r.db.ExecContext(oltp, "sleep 2s"); err == nil || time.Since(began) != 200*ms {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
