package main

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

const (
	tripAfter = 5               // failures in a row
	openFor   = 5 * time.Second // then one call is let through to see
)

// breaker stops calling a database that fails, so that it can recover. There is one per kind of work: reports that all
// run into their timeout must not close the door to logins.
type breaker = gobreaker.CircuitBreaker[struct{}]

func newBreaker(name string) *breaker {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        name,
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsExcluded:  saysNothing,
	})
}

// saysNothing reports whether an error tells nothing of the database's health, good or bad. A rejection is one: the
// pool refused, and the database was not asked; counted as a failure, one burst of reports would shut all of them out
// for seconds. The exception is a call that already had its permit and waited in vain for the server to accept a
// connection.
func saysNothing(err error) bool {
	var refused *partition.AcquireError
	if errors.As(err, &refused) {
		return !refused.Dialing
	}
	return errors.Is(err, context.Canceled) ||
		errors.Is(err, partition.ErrUnknownWorkload) || errors.Is(err, partition.ErrUntagged)
}

// isOpen reports whether err is the breaker's own.
func isOpen(err error) bool {
	return errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests)
}
