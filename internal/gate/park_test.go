package gate

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// shelf is an owner that parks: each permit was given for one of its places.
type shelf struct {
	*Gate
	places []atomic.Int32
}

const (
	empty int32 = iota
	taken
	onShelf
)

func newShelf(limit, maxWaiting int) *shelf {
	s := &shelf{places: make([]atomic.Int32, limit)}
	s.Gate = New(limit, maxWaiting, clock, s.reclaim)
	return s
}

func (s *shelf) reclaim() bool {
	for i := range s.places {
		if s.places[i].CompareAndSwap(onShelf, empty) {
			s.ReleaseParkedLocked()
			return true
		}
	}
	return false
}

// get takes up the permit of place last, or acquires one and finds it a place.
func (s *shelf) get(t *testing.T, last int) int {
	if s.Calm() && s.places[last].CompareAndSwap(onShelf, taken) {
		s.TakeParked(clock())
		return last
	}
	if err := s.Acquire(t.Context(), time.Hour); err != nil {
		t.Error(err)
	}
	for {
		for i := range s.places {
			if s.places[i].CompareAndSwap(empty, taken) {
				return i
			}
		}
	}
}

func (s *shelf) put(i int) {
	if s.Calm() {
		s.Park(clock())
		s.places[i].Store(onShelf)
		if s.Calm() || !s.places[i].CompareAndSwap(onShelf, taken) {
			return
		}
		s.Unpark(clock())
	}
	s.places[i].Store(empty)
	s.Release()
}

func TestParkedPermitCountsAsFree(t *testing.T) {
	t.Parallel()
	s := newShelf(1, 1)
	i := s.get(t, 0)
	if got := s.Stats(); got.InUse != 1 || got.Parked != 0 || s.AnyParked() {
		t.Errorf("taken: %+v", got)
	}
	s.put(i)
	if got := s.Stats(); got.InUse != 0 || got.Parked != 1 || got.Acquired != 1 || !s.AnyParked() {
		t.Errorf("parked: %+v", got)
	}
	s.get(t, i)
	if got := s.Stats(); got.InUse != 1 || got.Parked != 0 || got.Acquired != 2 || got.PeakInUse != 1 {
		t.Errorf("taken up again: %+v", got)
	}
}

func TestParkedPermitIsGivenToWhoFindsNoOther(t *testing.T) {
	t.Parallel()
	s := newShelf(2, 0)
	a, b := s.get(t, 0), s.get(t, 1)
	s.put(a)
	if !s.TryAcquire() {
		t.Fatal("the parked permit was not to be had")
	}
	if s.TryAcquire() {
		t.Fatal("a third permit of two")
	}
	s.put(b)
	if got := s.Stats(); got.InUse != 1 || got.Parked != 1 {
		t.Errorf("%+v", got)
	}
}

func TestGateIsCalmUnlessSomebodyWaitsOrItIsShut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(1, 1)
		calm := func(want bool, when string) {
			if s.Calm() != want {
				t.Errorf("%s: calm is %v", when, !want)
			}
		}
		calm(true, "new")
		s.Pause()
		calm(false, "paused")
		s.Resume()
		calm(true, "resumed")
		place := s.get(t, 0)
		calm(true, "full")
		go s.Acquire(t.Context(), time.Minute)
		synctest.Wait()
		calm(false, "somebody waits")
		s.put(place)
		calm(true, "the waiter has it")
		s.Resize(0)
		calm(false, "over its limit")
		s.Release()
		calm(true, "the surplus is back")
		s.Close()
		calm(false, "closed")
	})
}

func TestSaturationEndsWhereAPermitIsParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(1, 0)
		place := s.get(t, 0)
		time.Sleep(time.Second)
		s.put(place)
		time.Sleep(time.Second)
		if got := s.Stats(); got.SaturatedFor != 0 || got.SaturatedTime != time.Second {
			t.Errorf("saturated for %v, in all %v", got.SaturatedFor, got.SaturatedTime)
		}
		s.get(t, place)
		time.Sleep(time.Second)
		if got := s.Stats(); got.SaturatedFor != time.Second || got.SaturatedTime != 2*time.Second {
			t.Errorf("saturated for %v, in all %v", got.SaturatedFor, got.SaturatedTime)
		}
	})
}

// Its end was read from the clock before somebody else looked, and came after.
func TestSaturatedTimeDoesNotGoBackWhereASpellEndsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(1, 0)
		s.get(t, 0)
		time.Sleep(time.Second)
		end := clock()
		time.Sleep(time.Second)
		before := s.Stats().SaturatedTime
		s.Park(end)
		if after := s.Stats().SaturatedTime; before != 2*time.Second || after != before {
			t.Errorf("%v, then %v", before, after)
		}
		s.Unpark(clock())
		time.Sleep(3 * time.Second)
		if after := s.Stats().SaturatedTime; after != 4*time.Second {
			t.Errorf("%v after another spell", after)
		}
	})
}

func TestSaturatedTimeNeitherGoesBackNorRunsAhead(t *testing.T) {
	t.Parallel()
	s, began := newShelf(1, 0), clock()
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		for place := 0; clock()-began < 200*time.Millisecond; s.put(place) {
			place = s.get(t, place)
		}
	})
	for last := time.Duration(0); clock()-began < 200*time.Millisecond; {
		got := s.Stats().SaturatedTime
		if got < last || got > clock()-began {
			t.Fatalf("%v after %v, in %v", got, last, clock()-began)
		}
		last = got
	}
}

// Callers that fight over places, by the fast road and the slow one, while the gate is resized under them: never
// are more permits in use than there are, nobody is forgotten in the queue, and nothing is left.
func TestPermitsAreNeitherLostNorDoubledByParking(t *testing.T) {
	t.Parallel()
	const limit, callers, rounds = 3, 8, 3000
	s := newShelf(limit, callers)
	var inUse, most atomic.Int32
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			last := c % limit
			for range rounds {
				last = s.get(t, last)
				if n := inUse.Add(1); n > most.Load() {
					most.Store(n)
				}
				inUse.Add(-1)
				s.put(last)
			}
		})
	}
	all.Go(func() {
		for range rounds {
			s.Resize(1)
			s.Resize(limit)
		}
	})
	all.Wait()
	got := s.Stats()
	if most.Load() > limit || got.InUse != 0 || got.Waiting != 0 || got.Acquired != callers*rounds || got.PeakInUse > limit {
		t.Errorf("%d at once, %+v", most.Load(), got)
	}
}
