package partition_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// A permit that comes at the very end of the wait leaves the driver's reset no time. The caller leaves; the connection,
// which is sound, stays.
func TestConnectionWhoseResetOutlastsItsCallerIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 1))
		r.server.On(fakedb.Reset, fakedb.Delay(ms))
		giveBack := r.take(workload.OLTP, 1)
		time.AfterFunc(99*ms+900*time.Microsecond, giveBack)
		began := time.Now()
		_, err := r.db.ExecContext(oltp, "ok")
		if took := time.Since(began); !errors.Is(err, partition.ErrAcquireTimeout) || took != 100*ms {
			t.Errorf("%v after %v", err, took)
		}
		r.mustExec(oltp, "ok")
		synctest.Wait()
		if s := r.server.Stats(); s.Dials != 1 || s.Closed != 0 {
			t.Errorf("%d dials, %d closed: a healthy connection was thrown away", s.Dials, s.Closed)
		}
		r.idle()
	})
}

func TestPanicOfALateResetReachesItsCallerAndLosesNoPermit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 1))
		giveBack := r.take(workload.OLTP, 1)
		r.server.On(fakedb.Reset, func(context.Context, fakedb.Call) error { panic("reset") })
		time.AfterFunc(95*ms, giveBack)
		if !panics(func() { r.db.ExecContext(oltp, "ok") }) {
			t.Error("no panic")
		}
		synctest.Wait()
		r.server.On(fakedb.Reset, nil)
		r.idle()
		r.mustExec(oltp, "ok")
	})
}

func TestConnectionWhoseResetHangsAfterItsCallerHasLeftIsDiscarded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 1))
		giveBack := r.take(workload.OLTP, 1)
		r.server.On(fakedb.Reset, fakedb.Delay(time.Hour))
		time.AfterFunc(99*ms, giveBack)
		if _, err := r.db.ExecContext(oltp, "ok"); !errors.Is(err, partition.ErrAcquireTimeout) {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		r.server.On(fakedb.Reset, nil)
		r.mustExec(oltp, "ok")
		if s := r.server.Stats(); s.Dials != 2 || s.Open != 1 {
			t.Errorf("%+v", s)
		}
	})
}
