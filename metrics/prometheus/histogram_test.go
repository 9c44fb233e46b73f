package prometheus

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestBoundBelongsToItsBucket(t *testing.T) {
	t.Parallel()
	h := newHistogram(newBounds([]float64{.001, .01}))
	for _, d := range []time.Duration{0, time.Millisecond, time.Millisecond + 1, 10 * time.Millisecond, time.Second} {
		h.observe(d)
	}
	if d := h.read(); !slices.Equal(d.atMost, []uint64{2, 4}) || d.total != 5 || d.sum != 1012*time.Millisecond+1 {
		t.Errorf("%+v", d)
	}
}

func TestNothingIsLostBetweenManyCallers(t *testing.T) {
	t.Parallel()
	h := newHistogram(newBounds(defaultHold))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 1000 {
				h.observe(time.Duration(i) * time.Millisecond)
			}
		})
	}
	all.Wait()
	if d := h.read(); d.total != 8000 || d.sum != 28*time.Second {
		t.Errorf("%+v", d)
	}
}

func TestBoundsAreSortedAndFinite(t *testing.T) {
	t.Parallel()
	b := newBounds([]float64{1, .1, math.Inf(1), 1, math.NaN()})
	if !slices.Equal(b.seconds, []float64{.1, 1}) || !slices.Equal(b.limits, []time.Duration{time.Second / 10, time.Second}) {
		t.Errorf("%v %v", b.seconds, b.limits)
	}
}

func TestBoundLongerThanAnyDurationHasAllBelowIt(t *testing.T) {
	t.Parallel()
	for _, huge := range []float64{1e10, math.MaxFloat64} {
		b := newBounds([]float64{-huge, .1, huge})
		h := newHistogram(b)
		h.observe(time.Hour)
		if d := h.read(); !slices.Equal(d.atMost, []uint64{0, 0, 1}) {
			t.Errorf("%g: at most %v are %d", huge, b.limits, d.atMost)
		}
		if got := b.kept().seconds; !slices.Equal(got, []float64{1e-6, .1, 1e4}) {
			t.Errorf("of %g the pools have %v", huge, got)
		}
	}
}

func TestPoolsHaveTheDefaultBounds(t *testing.T) {
	t.Parallel()
	for _, seconds := range [][]float64{defaultWait, defaultHold} {
		if got := newBounds(seconds).kept().seconds; !slices.Equal(got, seconds) {
			t.Errorf("of %v there are %v", seconds, got)
		}
	}
}
