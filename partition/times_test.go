package partition_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// 98 callers find their connection idle, two wait for 40 ms and 80 ms.
func TestTimesAreTheQuantilesOfWaitsAndHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1}))
		if got := r.pool(workload.OLTP).Times(); got != (partition.Times{}) {
			t.Errorf("before anybody came: %+v", got)
		}
		for range 97 {
			r.db.ExecContext(oltp, "sleep 10ms")
		}
		for range 3 {
			go r.db.ExecContext(oltp, "sleep 40ms")
		}
		time.Sleep(time.Second)
		got := r.pool(workload.OLTP).Times()
		atMost := func(d, exact time.Duration) bool { return d >= exact && d <= exact+exact/8 }
		if got.WaitP50 > time.Microsecond*2 || !atMost(got.WaitP99, 40*ms) || !atMost(got.HoldP50, 10*ms) || !atMost(got.HoldP99, 40*ms) {
			t.Errorf("%+v", got)
		}
	})
}
