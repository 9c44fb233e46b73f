package driver

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func newGuard(stuck func()) *guard {
	g := new(guard)
	g.init(stuck)
	return g
}

// started returns a guard of whose calls none has begun, and a context that it ends.
func started(t *testing.T) (*guard, context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	g := newGuard(func() {})
	t.Cleanup(g.stop)
	return g, ctx, cancel
}

func TestGuardEndsACallAtItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, ctx, cancel := started(t)
		began := time.Now()
		g.enter(Now()+time.Second, 0, cancel, nil, 0)
		<-ctx.Done()
		if took := time.Since(began); took != time.Second || !g.exit() {
			t.Errorf("ended after %v", took)
		}
	})
}

func TestGuardSetForALateDeadlineKeepsAnEarlierOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, ctx, cancel := started(t)
		g.enter(Now()+time.Hour, 0, cancel, nil, 0)
		g.exit()
		began := time.Now()
		g.enter(Now()+time.Second, 0, cancel, nil, 0)
		<-ctx.Done()
		if took := time.Since(began); took != time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}

func TestGuardOfAnEndedCallNeverEndsTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, ctx, cancel := started(t)
		for range 100 {
			g.enter(Now()+time.Second, 0, cancel, nil, 0)
			time.Sleep(time.Second - time.Nanosecond)
			if g.exit() {
				t.Fatal("fired before its time")
			}
		}
		time.Sleep(time.Minute)
		if ctx.Err() != nil {
			t.Error("fired with no call")
		}
	})
}

func TestCallThatHangsInALazyFetchIsEndedAtUntilPlusSlack(t *testing.T) {
	t.Parallel()
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			const slack = 500 * time.Millisecond
			g, ctx, cancel := started(t)
			limit := time.Duration(1+rand.IntN(3000)) * time.Millisecond
			for range 3 { // statements before it, so that the timer is set for one of those
				g.enter(Now()+limit+slack, slack, cancel, nil, 0)
				time.Sleep(time.Duration(rand.IntN(int(limit))))
				g.exit()
			}
			until := Now() + limit
			g.enter(until+slack, slack, cancel, nil, 0)
			time.Sleep(time.Duration(rand.IntN(int(limit))))
			g.exit()
			g.enterLazily(until+slack, slack, cancel, nil, 0)
			<-ctx.Done()
			if late := Now() - (until + slack); late != 0 {
				t.Fatalf("ended %v late", late)
			}
		})
	}
}

func TestCallThatHangsInALateFetchHasOneToTwoSlacks(t *testing.T) {
	t.Parallel()
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			const slack = 500 * time.Millisecond
			g, ctx, cancel := started(t)
			until := Now() + time.Second
			g.enter(until+slack, slack, cancel, nil, 0)
			time.Sleep(time.Millisecond)
			g.exit()
			for range 1 + rand.IntN(5) { // a consumer that takes its time
				time.Sleep(time.Second + time.Duration(rand.IntN(700))*time.Millisecond)
				g.enterLazily(until+slack, slack, cancel, nil, 0)
				time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
				g.exit()
			}
			began := Now()
			g.enterLazily(until+slack, slack, cancel, nil, 0)
			<-ctx.Done()
			if took := Now() - began; took < slack || took > 2*slack {
				t.Fatalf("ended after %v", took)
			}
		})
	}
}

func TestLazyGuardLeavesQuickCallsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _, cancel := started(t)
		until := Now() + time.Second
		for range 1000 {
			g.enterLazily(until+500*time.Millisecond, 500*time.Millisecond, cancel, nil, 0)
			time.Sleep(400 * time.Millisecond)
			if g.exit() {
				t.Fatal("a quick call was ended")
			}
		}
	})
}

// The timer may still be set for an earlier call.
func TestRevokedCallIsNotTakenForStuckByALateTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(func() { t.Error("broken off") })
		g.enter(Now()+time.Second, 0, func() {}, nil, 0)
		g.exit()
		g.enter(Now()+time.Minute, 0, func() {}, nil, 0)
		time.Sleep(999 * time.Millisecond)
		if g.revoke()&running == 0 {
			t.Error("no call was running")
		}
		time.Sleep(time.Minute)
	})
}

func TestLateCallIsStuckASecondAfterItBeganAndNotOnceItHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := 0
		g := newGuard(func() { stuck++ })
		g.enter(Now()+time.Second, 0, func() {}, nil, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		if !g.exit() {
			t.Fatal("not fired")
		}
		g.leave()
		for range 3 {
			g.enterLate()
			time.Sleep(stuckAfter - time.Nanosecond)
			if g.exit() {
				t.Error("a late call's guard fired")
			}
			time.Sleep(10 * time.Nanosecond)
		}
		time.Sleep(time.Minute)
		if stuck != 0 {
			t.Error("broken off although every call ended in time")
		}
		g.enterLate()
		time.Sleep(stuckAfter)
		synctest.Wait()
		if g.exit(); stuck != 1 {
			t.Errorf("broken off %d times", stuck)
		}
	})
}

// The race that everything hangs on, in real time: calls that end about when their guard fires.
func TestEndOfACallAndItsGuardAgreeOnWhoWon(t *testing.T) {
	t.Parallel()
	for range 500 {
		var ended atomic.Bool
		g := newGuard(func() {})
		fire := func() { ended.Store(true) }
		for call := range 50 {
			g.enter(Now()+time.Duration(rand.IntN(20))*time.Microsecond, 0, fire, nil, 0)
			for range rand.IntN(2000) {
				_ = call
			}
			if g.exit() {
				break // doomed: its cancel runs, or is about to
			}
			if ended.Load() {
				t.Fatal("exit said that the guard had not fired, and it had")
			}
		}
		g.stop()
	}
}

func BenchmarkGuard(b *testing.B) {
	g := newGuard(func() {})
	defer g.stop()
	cancel := func() {}
	b.Run("exact", func(b *testing.B) {
		for b.Loop() {
			g.enter(Now()+time.Hour, 0, cancel, nil, 0)
			g.exit()
		}
	})
	b.Run("lazy", func(b *testing.B) {
		until := Now() + time.Hour
		for b.Loop() {
			g.enterLazily(until, time.Hour, cancel, nil, 0)
			g.exit()
		}
	})
}

func TestCopyIsRecognisedBehindComments(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]bool{
		"COPY t FROM STDIN":                        true,
		" \n copy t (a) FROM STDIN":                true,
		"/* job */ -- nightly\n COPY t FROM STDIN": true,
		"copying":              true, // wrong, and harmless
		"-- COPY t\nSELECT 1":  false,
		"SELECT 'COPY t'":      false,
		"/* never closed COPY": false,
		"":                     false,
	} {
		if got := isCopy(query); got != want {
			t.Errorf("%q: %v", query, got)
		}
	}
}
