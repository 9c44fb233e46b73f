package gate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const long = time.Hour

var epoch = time.Now()

func clock() time.Duration { return time.Since(epoch) }

// newGate is a gate whose owner parks nothing.
func newGate(limit, maxWaiting int) *Gate { return New(limit, maxWaiting, clock, nil) }

// Acquire is all that a caller does. A timeout of zero or less does not wait.
func (g *Gate) Acquire(ctx context.Context, timeout time.Duration) error {
	w, err := g.Enter(timeout > 0)
	if w == nil {
		return err
	}
	return g.Wait(ctx, w, timeout)
}

func (g *Gate) reserve() bool {
	g.Lock()
	defer g.Unlock()
	return g.ReserveLocked()
}

func TestPermitsAreNeverMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	g := newGate(3, 0)
	for i := range 3 {
		if !g.TryAcquire() {
			t.Fatalf("permit %d of 3 was refused", i+1)
		}
	}
	if g.TryAcquire() {
		t.Fatal("a fourth permit was given")
	}
	if err := g.Acquire(t.Context(), long); err != ErrFull {
		t.Fatalf("got %v, want ErrFull", err)
	}
	g.Release()
	if !g.TryAcquire() {
		t.Fatal("a released permit was not given again")
	}
}

func TestQueueIsBoundedAndRejectsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 2)
		g.TryAcquire()
		for range 2 {
			go g.Acquire(t.Context(), time.Second)
		}
		synctest.Wait()
		began := time.Now()
		if err := g.Acquire(t.Context(), time.Second); err != ErrFull {
			t.Fatalf("got %v, want ErrFull", err)
		}
		if waited := time.Since(began); waited != 0 {
			t.Fatalf("rejection took %v", waited)
		}
		time.Sleep(time.Second)
	})
}

func TestWaitersAreServedInOrderOfArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 100)
		g.TryAcquire()
		var mu sync.Mutex
		var order []int
		for i := range 100 {
			go func() {
				if err := g.Acquire(t.Context(), long); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				g.Release()
			}()
			synctest.Wait()
		}
		g.Release()
		synctest.Wait()
		if len(order) != 100 || !slices.IsSorted(order) {
			t.Fatalf("served in order %v", order)
		}
	})
}

func TestFreePermitIsNeverTakenPastAWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 1)
		g.TryAcquire()
		served := false
		go func() { served = g.Acquire(t.Context(), long) == nil }()
		synctest.Wait()
		g.Release()
		if g.TryAcquire() || g.reserve() {
			t.Fatal("a newcomer overtook the waiter")
		}
		synctest.Wait()
		if !served {
			t.Fatal("the waiter was not served")
		}
	})
}

func TestWaitEndsAtTheTimeoutOrAtTheCallersDeadlineIfSooner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		timeout, deadline, want time.Duration
		err                     error
	}{
		{100 * time.Millisecond, 5 * time.Second, 100 * time.Millisecond, ErrTimeout},
		{100 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond, context.DeadlineExceeded},
		{0, time.Second, 0, ErrTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(1, 1)
			g.TryAcquire()
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			defer cancel()
			began := time.Now()
			err := g.Acquire(ctx, c.timeout)
			if !errors.Is(err, c.err) || time.Since(began) != c.want {
				t.Fatalf("got %v after %v, want %v after %v", err, time.Since(began), c.err, c.want)
			}
			if s := g.Stats(); s.Waiting != 0 || s.InUse != 1 {
				t.Fatalf("the failed acquire left a trace: %+v", s)
			}
		})
	}
}

// The grant and the giving up come in the same instant of fake time, in either order.
func TestPermitGrantedAsItsWaiterGivesUpIsNotLost(t *testing.T) {
	t.Parallel()
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(1, 1)
			g.TryAcquire()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if rand.IntN(2) == 0 {
				time.AfterFunc(10*time.Millisecond, cancel)
			}
			time.AfterFunc(10*time.Millisecond, g.Release)
			err := g.Acquire(ctx, 10*time.Millisecond)
			synctest.Wait()
			if s := g.Stats(); err == nil && s.InUse != 1 || err != nil && s.InUse != 0 {
				t.Fatalf("acquire returned %v, in use %d", err, s.InUse)
			}
			if err == nil {
				g.Release()
			}
			if !g.TryAcquire() {
				t.Fatal("the permit is lost")
			}
		})
	}
}

func TestWaiterThatGaveUpIsNeverHandedAPermit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 3)
		g.TryAcquire()
		ctx, cancel := context.WithCancel(t.Context())
		gone, stays := make(chan error, 1), make(chan error, 1)
		go func() { gone <- g.Acquire(ctx, long) }()
		synctest.Wait()
		go func() { stays <- g.Acquire(t.Context(), long) }()
		synctest.Wait()
		cancel()
		if err := <-gone; err != context.Canceled {
			t.Fatalf("got %v", err)
		}
		g.Release()
		if err := <-stays; err != nil {
			t.Fatalf("the waiter behind got %v", err)
		}
	})
}

func TestGrowingServesWaitersAndShrinkingTakesEffectAsPermitsReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 5)
		g.TryAcquire()
		var served sync.WaitGroup
		for range 2 {
			served.Go(func() {
				if err := g.Acquire(t.Context(), long); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		g.Resize(3)
		served.Wait()
		g.Resize(1)
		for want := 2; want >= 0; want-- {
			if g.TryAcquire() {
				t.Fatal("a permit was given past the smaller limit")
			}
			g.Release()
			if s := g.Stats(); s.InUse != want {
				t.Fatalf("in use %d, want %d", s.InUse, want)
			}
		}
		if !g.TryAcquire() {
			t.Fatal("the one permit left was refused")
		}
	})
}

func TestSmallerBoundHoldsForNewcomersAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 2)
		g.TryAcquire()
		waiter := make(chan error, 1)
		go func() { waiter <- g.Acquire(t.Context(), long) }()
		synctest.Wait()
		g.Bound(1)
		if err := g.Acquire(t.Context(), long); err != ErrFull {
			t.Errorf("a newcomer got %v", err)
		}
		g.Release()
		if err := <-waiter; err != nil {
			t.Errorf("the waiter got %v", err)
		}
		g.Bound(-1)
		if err := g.Acquire(t.Context(), long); err != ErrFull || g.Stats().MaxWaiting != 0 {
			t.Errorf("without a queue: %v", err)
		}
		g.Release()
	})
}

func TestPauseTurnsAwayNewcomersAndWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 1)
		g.TryAcquire()
		waiter := make(chan error, 1)
		go func() { waiter <- g.Acquire(t.Context(), long) }()
		synctest.Wait()
		g.Pause()
		if err := <-waiter; err != ErrPaused {
			t.Fatalf("the waiter got %v", err)
		}
		g.Release()
		if err := g.Acquire(t.Context(), long); err != ErrPaused || g.TryAcquire() {
			t.Fatalf("a newcomer got %v", err)
		}
		if !g.reserve() {
			t.Fatal("upkeep must go on while paused")
		}
		g.Release()
		g.Resume()
		if err := g.Acquire(t.Context(), 0); err != nil {
			t.Fatalf("after Resume: %v", err)
		}
	})
}

func TestCloseWakesTheWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 1)
		g.TryAcquire()
		waiter := make(chan error, 1)
		go func() { waiter <- g.Acquire(t.Context(), long) }()
		synctest.Wait()
		g.Close()
		if err := <-waiter; err != ErrClosed {
			t.Fatalf("got %v", err)
		}
		g.Release()
		if err := g.Acquire(t.Context(), long); err != ErrClosed || g.TryAcquire() || g.reserve() {
			t.Fatalf("after Close: %v", err)
		}
	})
}

func TestReleaseWithoutAcquireIsABug(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	newGate(1, 0).Release()
}

func TestSaturationIsTheTimeWithoutAFreePermit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(2, 0)
		g.TryAcquire()
		time.Sleep(time.Second)
		g.TryAcquire()
		time.Sleep(3 * time.Second)
		if s := g.Stats(); s.SaturatedFor != 3*time.Second {
			t.Fatalf("saturated for %v", s.SaturatedFor)
		}
		g.Release()
		time.Sleep(time.Second)
		if s := g.Stats(); s.SaturatedFor != 0 || s.SaturatedTime != 3*time.Second || s.PeakInUse != 2 {
			t.Fatalf("%+v", s)
		}
	})
}

// The field's own table: 60 requests, one every 5 ms, two slow (400 ms) to one fast (10 ms), wait at most 50 ms.
func TestPartitionsServeWhatOnePoolStarves(t *testing.T) {
	t.Parallel()
	type outcome struct{ slowOK, slowRejected, fastOK, fastRejected int }
	play := func(t *testing.T, slow, fast *Gate) (o outcome) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 60 {
			g, hold, ok, rejected := slow, 400*time.Millisecond, &o.slowOK, &o.slowRejected
			if i%3 == 2 {
				g, hold, ok, rejected = fast, 10*time.Millisecond, &o.fastOK, &o.fastRejected
			}
			all.Go(func() {
				err := g.Acquire(t.Context(), 50*time.Millisecond)
				mu.Lock()
				if err != nil {
					*rejected++
				} else {
					*ok++
				}
				mu.Unlock()
				if err == nil {
					time.Sleep(hold)
					g.Release()
				}
			})
			time.Sleep(5 * time.Millisecond)
		}
		all.Wait()
		return o
	}
	synctest.Test(t, func(t *testing.T) {
		shared := newGate(10, 60)
		if got, want := play(t, shared, shared), (outcome{10, 30, 4, 16}); got != want {
			t.Errorf("one pool of 10: got %+v, want %+v", got, want)
		}
		if got, want := play(t, newGate(4, 60), newGate(6, 60)), (outcome{4, 36, 20, 0}); got != want {
			t.Errorf("pools of 4 and 6: got %+v, want %+v", got, want)
		}
	})
}

// 15 permits, wait 10 ms, 500 requests a second, and the dependency hangs for 5 s.
func TestHangingDependencyHoldsThePermitsAndNothingElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const healthy = 5 * time.Millisecond
		g := newGate(15, 1000)
		start := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		peak, late, servedAfter := 0, 0, 0
		for range 500 * 7 {
			all.Go(func() {
				began := time.Now()
				err := g.Acquire(t.Context(), 10*time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					if time.Since(began) > 10*time.Millisecond {
						late++
					}
					return
				}
				peak = max(peak, g.Stats().InUse)
				if began.Sub(start) > 5*time.Second+10*time.Millisecond {
					servedAfter++
				}
				mu.Unlock()
				time.Sleep(max(time.Until(start.Add(5*time.Second)), healthy))
				mu.Lock()
				g.Release()
			})
			time.Sleep(2 * time.Millisecond)
		}
		all.Wait()
		if s := g.Stats(); peak != 15 || s.PeakInUse != 15 || late != 0 || s.InUse != 0 {
			t.Errorf("peak %d, late rejections %d, %+v", peak, late, s)
		}
		if servedAfter < 900 {
			t.Errorf("served %d of about 990 after the dependency had come back", servedAfter)
		}
	})
}

func TestNoPermitIsLostInTenThousandRandomOperations(t *testing.T) {
	t.Parallel()
	g := newGate(4, 8)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 625 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(300))*time.Microsecond)
				if g.Acquire(ctx, time.Duration(rand.IntN(200))*time.Microsecond) == nil {
					if s := g.Stats(); s.InUse > 6 {
						t.Errorf("in use %d", s.InUse)
					}
					g.Release()
				}
				cancel()
				switch rand.IntN(40) {
				case 0:
					g.Pause()
					g.Resume()
				case 1:
					g.Resize(2 + rand.IntN(5))
				}
			}
		})
	}
	all.Wait()
	if s := g.Stats(); s.InUse != 0 || s.Waiting != 0 {
		t.Fatalf("%+v", s)
	}
}

func BenchmarkTryAcquire(b *testing.B) {
	g := newGate(10, 10)
	for b.Loop() {
		g.TryAcquire()
		g.Release()
	}
}

func BenchmarkRejectionWhenFull(b *testing.B) {
	g := newGate(1, 0)
	g.TryAcquire()
	b.ReportAllocs()
	for b.Loop() {
		g.Acquire(context.Background(), time.Second)
	}
}

func ExampleGate() {
	g := newGate(1, 0)
	fmt.Println(g.TryAcquire(), g.TryAcquire())
	g.Release()
	// Output: true false
}
