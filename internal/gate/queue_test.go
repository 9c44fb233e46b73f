package gate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// However a wait ends, the next caller that waits gets the same waiter, and waits as long as it should.
func TestWaitersAreUsedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 1)
		g.TryAcquire()
		gone, cancel := context.WithCancel(t.Context())
		var last *Waiter
		for i, end := range []struct {
			ctx  context.Context
			make func()
			want error
			took time.Duration
		}{
			{t.Context(), g.Release, nil, time.Second},
			{t.Context(), func() {}, ErrTimeout, 2 * time.Second},
			{gone, cancel, context.Canceled, time.Second},
			{t.Context(), g.Pause, ErrPaused, time.Second},
		} {
			w, err := g.Enter(true)
			if err != nil || last != nil && w != last {
				t.Fatalf("wait %d: %v, waiter %p after %p", i, err, w, last)
			}
			last = w
			go func() { time.Sleep(time.Second); end.make() }()
			began := time.Now()
			if err := g.Wait(end.ctx, w, 2*time.Second); err != end.want {
				t.Errorf("wait %d: got %v, want %v", i, err, end.want)
			}
			if took := time.Since(began); took != end.took {
				t.Errorf("wait %d took %v, want %v", i, took, end.took)
			}
			synctest.Wait()
		}
	})
}
