package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// beginUnder begins a call under ctx that has an hour, as start does.
func (g *guard) beginUnder(ctx context.Context, cancel context.CancelFunc) {
	began := Now()
	k := call{latest: latest(ctx, began), caller: ctx}
	k.watchFrom(began)
	g.enter(began+time.Hour, 0, cancel, k.watched(), k.lookAt)
}

// endsInTime ends the context of a call that has just begun, and so the call.
func endsInTime(t *testing.T, ended context.Context, end context.CancelFunc) {
	t.Helper()
	end()
	began := time.Now()
	<-ended.Done()
	if took := time.Since(began); took != watchAfter {
		t.Errorf("ended after %v", took)
	}
}

func TestWatchedCallEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deadline    bool
		after, late time.Duration
	}{
		"cancelled":           {false, time.Second, 0},
		"cancelled at once":   {false, 0, watchAfter},
		"cancelled soon":      {false, 2 * time.Millisecond, 3 * time.Millisecond},
		"deadline":            {true, time.Second, 0},
		"deadline soon":       {true, 2 * time.Millisecond, 0},
		"deadline has passed": {true, -time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g, ended, cancel := started(t)
				caller, end := context.WithCancel(t.Context())
				if c.deadline {
					caller, end = context.WithTimeout(t.Context(), c.after)
				} else {
					time.AfterFunc(c.after, end)
				}
				defer end()
				mended := false
				g.mend = func() { mended = true }
				began := time.Now()
				g.beginUnder(caller, cancel)
				<-ended.Done()
				if took, want := time.Since(began), max(c.after, 0)+c.late; took != want {
					t.Errorf("ended after %v, not %v", took, want)
				}
				if g.exit() || !mended {
					t.Error("the connection is not left as it was")
				}
			})
		})
	}
}

func TestWatchOfACallThatHasEndedEndsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, ended, cancel := started(t)
		for range 100 {
			caller, end := context.WithCancel(t.Context())
			g.beginUnder(caller, cancel)
			time.Sleep(time.Duration(rand.IntN(12)) * time.Millisecond) // watched or not
			if g.exit() {
				t.Fatal("fired, and its caller still waits")
			}
			g.beginUnder(t.Context(), cancel)
			end()
			time.Sleep(20 * time.Millisecond)
			if g.exit() {
				t.Fatal("the end of another's context has ended the call")
			}
		}
		// And after all that a call is watched in time, in a fetch as well.
		caller, end := context.WithCancel(t.Context())
		g.beginUnder(caller, cancel)
		time.Sleep(20 * time.Millisecond)
		g.exit()
		g.enterLazily(Now()+time.Hour, time.Second, cancel, caller, soon)
		endsInTime(t, ended, end)
	})
}

// As the Close of a prepared statement does while rows are open.
func TestCallOfAnotherContextInBetweenDoesNotPutOffTheWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, ended, cancel := started(t)
		caller, end := context.WithCancel(t.Context())
		g.beginUnder(caller, cancel)
		g.exit()
		time.Sleep(2 * watchAfter)
		g.enter(Now()+time.Hour, 0, cancel, nil, 0)
		g.exit()
		g.enter(Now()+time.Hour, 0, cancel, caller, soon)
		endsInTime(t, ended, end)
	})
}

func TestQuickCallsAreNotWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _, cancel := started(t)
		caller := &counted{Context: t.Context()}
		for range 1000 {
			g.beginUnder(caller, cancel)
			g.exit()
		}
		if caller.asked.Load() != 0 {
			t.Error("a call that took no time was watched")
		}
	})
}

// counted counts who wants to know when it ends.
type counted struct {
	context.Context
	asked atomic.Int64
}

func (c *counted) Done() <-chan struct{} {
	c.asked.Add(1)
	return c.Context.Done()
}

// In real time: calls that end about when their caller's context does, and some that their guard ends.
func TestCutIsMendedBeforeTheNextCall(t *testing.T) {
	t.Parallel()
	for range 500 {
		var isCut atomic.Bool
		g := newGuard(func() {})
		g.mend = func() { isCut.Store(false) }
		for range 50 {
			caller, end := context.WithCancel(t.Context())
			at := Now() + time.Duration(rand.IntN(20))*time.Microsecond
			g.enter(at+time.Duration(rand.IntN(100))*time.Microsecond, 0, func() { isCut.Store(true) }, caller, at)
			time.AfterFunc(time.Duration(rand.IntN(40))*time.Microsecond, end)
			for range rand.IntN(20000) {
				_ = caller
			}
			if g.exit() {
				break // doomed
			}
			if isCut.Load() {
				t.Fatal("the next call would find the connection cut")
			}
		}
		g.stop()
	}
}

func TestCallThatGoesOnAfterItsCallersContextIsStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := make(chan struct{})
		g := newGuard(func() { close(broken) })
		defer g.stop()
		caller, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		began := time.Now()
		g.beginUnder(caller, func() {})
		<-broken
		if took := time.Since(began); took != time.Second+stuckAfter || !g.exit() {
			t.Errorf("broken off after %v", took)
		}
	})
}

func TestContextThatIsNotToBeWatchedTellsThatItHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	u := unwatched{ctx}
	if u.Done() != nil {
		t.Error("the driver is told to watch it")
	}
	cancel()
	<-u.Done()
}

type rewriter struct{}

func (rewriter) RewriteQuery() {}

func TestOnlyARewriterIsToldWhenTheCallerEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type mode int // an option of pgx
	for _, c := range []struct {
		args []any
		told bool
	}{
		{nil, false},
		{[]any{int64(1), "a", nil}, false},
		{[]any{1, rewriter{}}, false}, // that is an argument
		{[]any{rewriter{}, 1}, true},
		{[]any{&rewriter{}}, true},
		{[]any{mode(1), []int16{1}, rewriter{}}, true},
		{[]any{mode(1), []int32{1}, nil, rewriter{}}, false},
	} {
		named := make([]sqldriver.NamedValue, len(c.args))
		for i, v := range c.args {
			named[i].Value = v
		}
		if told := contextFor(unwatched{ctx}, named).Done() != nil; told != c.told {
			t.Errorf("%v: told %v", c.args, told)
		}
	}
}
