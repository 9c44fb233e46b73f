package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// retries repeats calls that were refused, and no others: of a rejection alone it is certain that nothing was executed.
// It stands outside the bulkhead, so that a call which backs off holds neither a connection nor a place in the queue.
type retries struct {
	attempts int           // in all; 1 means none is repeated
	pause    time.Duration // at most, before the second attempt; it doubles after that
	budget   *budget
	sleep    func(context.Context, time.Duration) error
}

func newRetries(b *budget) retries {
	return retries{attempts: 3, pause: 50 * time.Millisecond, budget: b, sleep: sleep}
}

// do makes the call until it is served, or fails in another way, or neither attempts nor budget nor ctx allow one more.
// It returns the last error of the call.
func (r retries) do(ctx context.Context, call func() error) error {
	r.budget.earn()
	for attempt, most := 1, r.pause; ; attempt, most = attempt+1, 2*most {
		err := call()
		if !errors.Is(err, partition.ErrRejected) || attempt >= r.attempts || !r.budget.spend() {
			return err
		}
		// Callers that were refused together must not come back together.
		if r.sleep(ctx, rand.N(most)) != nil {
			return err
		}
	}
}

// sleep returns early, with an error, if ctx ends before d has passed.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// budget bounds retries to a share of all calls, so that an overload is not tripled by those who suffer from it.
type budget struct {
	mu     sync.Mutex // guards tokens; held for an addition
	tokens float64
	share  float64 // of a retry that each call earns
	most   float64 // that can be saved up
}

// newBudget allows one retry per ten calls, and a burst of ten.
func newBudget() *budget { return &budget{tokens: 10, share: 0.1, most: 10} }

func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+b.share, b.most)
}

// spend reports whether there is a retry left, and takes it.
func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
