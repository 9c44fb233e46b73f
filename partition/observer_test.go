package partition_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestObserversHearOfEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &recorder{}
		r := setup(t, fakedb.New(), partition.WithObserver(o), size(workload.OLTP, 1), limited(time.Second))
		r.mustExec(oltp, "sleep 30ms")
		giveBack := r.take(workload.OLTP, 1)
		r.db.ExecContext(oltp, "ok")
		giveBack()
		r.db.ExecContext(oltp, "hang")
		r.db.ExecContext(oltp, "badconn wrapped")
		time.Sleep(time.Minute)
		r.db.Close()
		synctest.Wait()
		if o.acquired != o.released || o.refused != 1 || o.timedOut != 1 || o.opened == 0 || o.opened != o.closed {
			t.Errorf("%+v", o)
		}
	})
}

func TestReplacedConnectionIsOneAcquireAndOneRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &recorder{}
		r := setup(t, fakedb.New(), partition.WithObserver(o))
		r.fill(workload.OLTP, 4)
		r.server.KillAll()
		for range 4 {
			r.mustExec(oltp, "ok")
		}
		synctest.Wait()
		if o.acquired != o.released {
			t.Errorf("%d acquired, %d released", o.acquired, o.released)
		}
	})
}

type recorder struct {
	mu                                                    sync.Mutex
	acquired, refused, released, timedOut, opened, closed int
}

func (o *recorder) count(pool workload.Name, n *int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if pool == workload.OLTP {
		*n++
	}
}

func (o *recorder) AcquireDone(_ context.Context, e partition.AcquireEvent) {
	if e.Err != nil {
		o.count(e.Pool, &o.refused)
		return
	}
	o.count(e.Pool, &o.acquired)
}
func (o *recorder) Released(e partition.ReleaseEvent) { o.count(e.Pool, &o.released) }
func (o *recorder) StatementTimedOut(_ context.Context, e partition.StatementEvent) {
	o.count(e.Pool, &o.timedOut)
}
func (o *recorder) ConnOpened(e partition.ConnEvent) { o.count(e.Pool, &o.opened) }
func (o *recorder) ConnClosed(e partition.ConnEvent) { o.count(e.Pool, &o.closed) }
