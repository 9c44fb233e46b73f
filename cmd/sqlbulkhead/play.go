package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

const (
	// loginPatience is when a login gives up: the deadline of its request.
	loginPatience = time.Second
	// thinkTime lies between two reports of an analyst, more or less.
	thinkTime = 100 * time.Millisecond
)

// traffic is the two kinds of work.
type traffic interface {
	Login(ctx context.Context, user int) error
	Report(ctx context.Context) error
}

// scenario is how much of both is played, and how long.
type scenario struct {
	duration time.Duration
	logins   int // per second
	analysts int
}

// play plays s on t and counts into count. It returns when the last login is
// back. Until then the analysts stay at work, but of theirs nothing counts that
// is not done by the end of the scenario. After ctx has ended nothing counts.
func play(ctx context.Context, t traffic, s scenario, count *tally) {
	day, endDay := context.WithCancel(ctx)
	defer endDay()
	end := time.Now().Add(s.duration)
	var analysts sync.WaitGroup
	for range s.analysts {
		analysts.Go(func() { analyse(asReport(day), t, end, count) })
	}
	playLogins(asLogin(ctx), t, s, count)
	endDay()
	analysts.Wait()
}

// playLogins starts logins at their times, whatever became of those before, as
// people at their keyboards do, and waits for all of them. The first is due at
// once, so that no scenario is too short for one.
func playLogins(ctx context.Context, t traffic, s scenario, count *tally) {
	var all sync.WaitGroup
	defer all.Wait()
	begin := time.Now()
	for i := 0; s.due(i) < s.duration; i++ {
		due := begin.Add(s.due(i))
		if !sleep(ctx, time.Until(due)) {
			return
		}
		all.Go(func() { logIn(ctx, t, i, begin, due, count) })
	}
	sleep(ctx, time.Until(begin.Add(s.duration)))
}

// due is when login i starts.
func (s scenario) due(i int) time.Duration {
	return time.Duration(i) * time.Second / time.Duration(s.logins)
}

// logIn measures from when the login was due, so that a wait is not hidden.
func logIn(ctx context.Context, t traffic, user int, begin, due time.Time, count *tally) {
	limited, cancel := context.WithDeadline(ctx, due.Add(loginPatience))
	defer cancel()
	err := t.Login(limited, user)
	took := time.Since(due)
	if ctx.Err() == nil {
		count.login(due.Sub(begin), took, err, limited.Err() != nil)
	}
}

// analyse is an analyst at work: one report after the other.
func analyse(ctx context.Context, t traffic, end time.Time, count *tally) {
	wait := thinkTime
	for sleep(ctx, jitter(wait)) {
		err := t.Report(ctx)
		if ctx.Err() != nil {
			return
		}
		if !time.Now().After(end) {
			count.report(err)
		}
		wait = max(thinkTime, retryAfter(err))
	}
}

// retryAfter is when it makes sense to come back to a pool that has refused.
func retryAfter(err error) time.Duration {
	var refused *partition.AcquireError
	switch {
	case errors.As(err, &refused):
		return refused.RetryAfter()
	case err != nil:
		return time.Second
	}
	return 0
}

// jitter is d, a quarter more or less, so that analysts do not march in step.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2)
}

// sleep is false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
