package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestRefusedCallHoldsNothingWhileItBacksOff(t *testing.T) {
	t.Parallel()
	r := setup(t)
	giveBack := r.fillReports()
	backedOff := 0
	r.reports.retries.sleep = func(context.Context, time.Duration) error {
		s := r.stats(workload.Reporting)
		if s.InUse != s.MaxOpenConns || s.Waiting != 0 { // the test holds all
			t.Errorf("while it backs off: in use %d of %d, waiting %d", s.InUse, s.MaxOpenConns, s.Waiting)
		}
		if backedOff++; backedOff == 2 {
			giveBack()
		}
		return nil
	}
	r.mustReport(false) // at the third attempt
	if backedOff != 2 {
		t.Errorf("backed off %d times", backedOff)
	}
}

func TestBudgetBoundsRetriesToAShareOfTheCalls(t *testing.T) {
	t.Parallel()
	const calls = 200
	made := 0
	r := newRetries(newBudget())
	r.sleep = noSleep
	for range calls {
		r.do(t.Context(), func() error { made++; return partition.ErrRejected })
	}
	// 10 that were saved up, and 0.1 for each call.
	if retried := made - calls; retried < 25 || retried > 30 {
		t.Errorf("%d retries of %d calls", retried, calls)
	}
}

func TestOnlyRejectionsAreRetried(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{
		nil, errors.New("syntax error"), &stmttimeout.Error{}, context.Canceled, partition.ErrUnknownWorkload,
	} {
		made := 0
		r := newRetries(newBudget())
		r.sleep = noSleep
		err := r.do(t.Context(), func() error { made++; return failure })
		if made != 1 || err != failure {
			t.Errorf("%v: %d calls, %v", failure, made, err)
		}
	}
}

func TestBackOffGrowsAndEndsWithTheCallersContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := fmt.Errorf("full: %w", partition.ErrRejected)
		r := newRetries(newBudget())
		began := time.Now()
		if err := r.do(t.Context(), func() error { return refused }); err != refused {
			t.Error(err)
		}
		if took := time.Since(began); took >= 3*r.pause {
			t.Errorf("backed off for %v", took)
		}

		ctx, cancel := context.WithCancel(t.Context())
		made := 0
		err := r.do(ctx, func() error { made++; cancel(); return refused })
		if made != 1 || err != refused {
			t.Errorf("%d calls after the context had ended, %v", made, err)
		}
	})
}
