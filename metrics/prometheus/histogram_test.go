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
	atMost, total, sum := h.cumulative()
	if !slices.Equal(atMost, []uint64{2, 4}) || total != 5 || sum != 1012*time.Millisecond+1 {
		t.Errorf("at most %v, in all %d, together %v", atMost, total, sum)
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
	if _, total, sum := h.cumulative(); total != 8000 || sum != 28*time.Second {
		t.Errorf("%d, together %v", total, sum)
	}
}

func TestBoundsAreSortedAndFinite(t *testing.T) {
	t.Parallel()
	b := newBounds([]float64{1, .1, math.Inf(1), 1, math.NaN()})
	if !slices.Equal(b.seconds, []float64{.1, 1}) || !slices.Equal(b.limits, []time.Duration{time.Second / 10, time.Second}) {
		t.Errorf("%v %v", b.seconds, b.limits)
	}
}
