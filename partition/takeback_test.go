package partition_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestDrainTakesBackWhatWasStillDialedAtItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 1), limited(partition.NoTimeout))
		r.server.On(fakedb.Dial, fakedb.Delay(80*ms))
		done := make(chan error, 1)
		go func() {
			_, err := r.db.ExecContext(oltp, "sleep 1h")
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		if err := r.reg.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain: %v", err)
		}
		if err := <-done; !errors.Is(err, partition.ErrReclaimed) {
			t.Errorf("the statement: %v", err)
		}
		synctest.Wait()
		if s := r.server.Stats(); s.Open != 0 || s.Running != 0 {
			t.Errorf("left on the server: %+v", s)
		}
	})
}
