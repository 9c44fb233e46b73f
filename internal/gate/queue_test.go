package gate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// However a wait ends, unless by its timer, the next caller that waits gets the same waiter; and each waits as long as it should.
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
			if last = w; end.want == ErrTimeout {
				last = nil
			}
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

// With the timers of Go 1.22 one that fires as the answer comes leaves its tick behind.
func TestTickOfOneWaitEndsNoOther(t *testing.T) {
	t.Setenv("GODEBUG", "asynctimerchan=1")
	g := newGate(1, 1)
	for range 20_000 {
		g.TryAcquire()
		w, err := g.Enter(true)
		if err != nil {
			t.Fatal(err)
		}
		g.Release()
		g.Wait(t.Context(), w, 1) // whichever comes first
		w, err = g.Enter(true)
		if err != nil {
			t.Fatal(err)
		}
		go g.Release()
		if err := g.Wait(t.Context(), w, long); err != nil {
			t.Fatal(err)
		}
		g.Release()
	}
}
