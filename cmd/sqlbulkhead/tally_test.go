package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	upTo := func(n int) []time.Duration {
		var d []time.Duration
		for i := range n {
			d = append(d, time.Duration(i+1))
		}
		return d
	}
	for _, c := range []struct {
		n, p int
		want time.Duration
	}{
		{0, 50, 0}, {1, 50, 1}, {1, 99, 1}, {1, 100, 1}, {2, 50, 1}, {3, 50, 2}, {2, 99, 2},
		{100, 50, 50}, {100, 99, 99}, {100, 100, 100}, {101, 99, 100}, {1000, 99, 990}, {99, 99, 99},
	} {
		if got := percentile(upTo(c.n), c.p); got != c.want {
			t.Errorf("p%d of %d: %d, want %d", c.p, c.n, got, c.want)
		}
	}
}

func TestFailureOfThePoolIsNotBroken(t *testing.T) {
	t.Parallel()
	var count tally
	rejected := fmt.Errorf("wrapped: %w", &partition.AcquireError{Reason: partition.ReasonQueueFull})
	count.login(3, nil, false)
	count.login(9, context.DeadlineExceeded, true)
	count.login(1, rejected, false)
	count.report(nil)
	count.report(rejected)
	want := counts{loginsOK: 1, loginsFailed: 2, reportsOK: 1, reportsRejected: 1}
	if got := count.soFar(); got != want {
		t.Errorf("%+v", got)
	}
	if got := count.result("x"); got.p50 != 3 || got.max != 9 || got.name != "x" {
		t.Errorf("%+v", got)
	}
}

func TestFirstErrorOfAnotherKindIsKept(t *testing.T) {
	t.Parallel()
	var count tally
	first, second := errors.New("first"), errors.New("second")
	for _, err := range []error{first, second} {
		count.login(1, err, false)
		count.report(err)
	}
	want := counts{loginsFailed: 2, loginsBroken: 2, reportsBroken: 2, firstLoginErr: first, firstReportErr: first}
	if got := count.soFar(); got != want {
		t.Errorf("%+v", got)
	}
}
