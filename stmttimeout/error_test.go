package stmttimeout

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

func TestExceededLimitIsBothSentinelsWhateverTheDriverSaid(t *testing.T) {
	t.Parallel()
	for _, driverErr := range []error{
		nil,
		errOther,
		&pgError{Code: "57014", Message: "canceling statement due to statement timeout"},
		sqldriver.ErrBadConn,
		context.Canceled,
		fmt.Errorf("read: %w", context.Canceled),
	} {
		err := fmt.Errorf("load report: %w", &Error{Limit: time.Second, Elapsed: time.Second, Err: driverErr})
		if !errors.Is(err, ErrExceeded) {
			t.Errorf("over %v: not ErrExceeded", driverErr)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("over %v: not context.DeadlineExceeded", driverErr)
		}
	}
}

func TestSentinelIsNotFoundInOtherErrors(t *testing.T) {
	t.Parallel()
	for _, err := range []error{context.DeadlineExceeded, context.Canceled, os.ErrDeadlineExceeded, errOther} {
		if errors.Is(err, ErrExceeded) {
			t.Errorf("%v is ErrExceeded", err)
		}
	}
}

func TestUnwrapGivesTheDriversError(t *testing.T) {
	t.Parallel()
	cause := &pgError{Code: "57014"}
	var err error = &Error{Err: fmt.Errorf("exec: %w", cause)}
	var got *pgError
	if !errors.As(err, &got) || got != cause {
		t.Errorf("errors.As found %v", got)
	}
}

func TestUnwrapHidesWhatWouldMislead(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{
		sqldriver.ErrBadConn,
		context.Canceled,
		fmt.Errorf("exec: %w", sqldriver.ErrBadConn),
		fmt.Errorf("exec: %w", context.Canceled),
		errors.Join(errOther, context.Canceled),
	} {
		err := &Error{Err: cause}
		if errors.Is(err, sqldriver.ErrBadConn) || errors.Is(err, context.Canceled) {
			t.Errorf("over %v: found the driver's error", cause)
		}
		if err.Unwrap() != nil {
			t.Errorf("over %v: Unwrap = %v", cause, err.Unwrap())
		}
		if err.Err == nil {
			t.Errorf("over %v: the field is gone", cause)
		}
	}
}

func TestErrorIsATimeout(t *testing.T) {
	t.Parallel()
	var err error = &Error{}
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Error("Timeout is not true")
	}
	if !os.IsTimeout(err) {
		t.Error("os.IsTimeout is not true")
	}
}

func TestErrorTextSaysLimitElapsedAndWhoEndedIt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  Error
		want string
	}{
		{
			Error{200 * time.Millisecond, 203*time.Millisecond + 17, true, errors.New("ERROR: canceling statement (SQLSTATE 57014)")},
			"stmttimeout: limit of 200ms exceeded after 203ms, ended by the server: ERROR: canceling statement (SQLSTATE 57014)",
		},
		{
			Error{5 * time.Second, 5050 * time.Millisecond, false, context.Canceled},
			"stmttimeout: limit of 5s exceeded after 5.05s, ended by the client guard",
		},
		{
			Error{Limit: time.Second, Elapsed: time.Second},
			"stmttimeout: limit of 1s exceeded after 1s, ended by the client guard",
		},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
