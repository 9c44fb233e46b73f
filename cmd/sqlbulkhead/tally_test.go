package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

func TestFailureOfThePoolIsNotBroken(t *testing.T) {
	t.Parallel()
	var count tally
	rejected := fmt.Errorf("wrapped: %w", &partition.AcquireError{Reason: partition.ReasonQueueFull})
	count.login(0, 3, nil, false)
	count.login(0, 9, context.DeadlineExceeded, true)
	count.login(0, 1, rejected, false)
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
		count.login(0, 1, err, false)
		count.report(err)
	}
	want := counts{loginsFailed: 2, loginsBroken: 2, reportsBroken: 2, firstLoginErr: first, firstReportErr: first}
	if got := count.soFar(); got != want {
		t.Errorf("%+v", got)
	}
}
