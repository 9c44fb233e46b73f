package partition_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestSlowCloseOfAnExpiredConnectionMakesNobodyWaitLongerThanItSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{
			MaxOpenConns: 1, AcquireTimeout: 50 * ms, ConnMaxIdleTime: time.Second}))
		r.server.On(fakedb.CloseConn, fakedb.Delay(2*time.Second))
		r.fill(workload.OLTP, 1)
		time.Sleep(1500 * ms)
		began := time.Now()
		_, err := r.db.ExecContext(oltp, "ok")
		if took := time.Since(began); took > 50*ms || err != nil && !errors.Is(err, partition.ErrRejected) {
			t.Errorf("%v after %v", err, took)
		}
		time.Sleep(3 * time.Second)
		r.mustExec(oltp, "ok")
		if s := r.server.Stats(); s.PeakOpen > 1 {
			t.Errorf("%d connections at once", s.PeakOpen)
		}
	})
}

func TestIdleConnectionsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{ConnMaxIdleTime: time.Minute, ConnMaxLifetime: 10 * time.Minute}))
		r.fill(workload.OLTP, 5)
		time.Sleep(30 * time.Second)
		r.mustExec(oltp, "ok")
		time.Sleep(45 * time.Second)
		if s := r.stats(workload.OLTP); s.Open != 1 {
			t.Errorf("%d open, one was used 45 s ago and four 75 s ago", s.Open)
		}
		for range 25 {
			r.mustExec(oltp, "ok")
			time.Sleep(30 * time.Second)
		}
		if s := r.server.Stats(); s.Dials < 6 {
			t.Errorf("%d dials: nothing was replaced in 12 minutes", s.Dials)
		}
		time.Sleep(5 * time.Minute)
		if s := r.stats(workload.OLTP); s.Open != 0 || r.server.Stats().Open != 0 {
			t.Errorf("%+v", s)
		}
		r.idle()
	})
}

func TestLifetimesOfOnePoolDiffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{
			MaxOpenConns: 20, ConnMaxIdleTime: partition.NoTimeout, ConnMaxLifetime: 100 * time.Minute}))
		r.fill(workload.OLTP, 20)
		time.Sleep(90*time.Minute - time.Second)
		if s := r.stats(workload.OLTP); s.Open != 20 {
			t.Fatalf("%d open before the earliest end", s.Open)
		}
		time.Sleep(5 * time.Minute)
		if s := r.stats(workload.OLTP); s.Open == 0 || s.Open == 20 {
			t.Errorf("%d of 20 open half-way through the jitter", s.Open)
		}
		time.Sleep(6 * time.Minute)
		if s := r.stats(workload.OLTP); s.Open != 0 {
			t.Errorf("%d open after the longest life", s.Open)
		}
	})
}

func TestMaxIdleConnsNegativeKeepsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{MaxIdleConns: -1}))
		r.mustExec(oltp, "ok")
		synctest.Wait()
		if s := r.server.Stats(); s.Open != 0 {
			t.Errorf("%d open", s.Open)
		}
	})
}
