package partition

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantileIsNeverTooShortAndAtMostAnEighthTooLong(t *testing.T) {
	t.Parallel()
	for range 200 {
		var h histogram
		holds := make([]time.Duration, 1+rand.IntN(500))
		for i := range holds {
			holds[i] = time.Duration(float64(2*time.Microsecond) * float64(uint64(1)<<rand.IntN(30)) * (1 + rand.Float64()))
			h.add(holds[i], 1)
		}
		slices.Sort(holds)
		for _, q := range []float64{0, 0.5, 0.99, 1} {
			exact, got := holds[max(int(math.Ceil(q*float64(len(holds)))), 1)-1], h.quantile(q)
			if got < exact || got > exact+exact/8+1 {
				t.Fatalf("quantile %g of %d: %v, exactly %v", q, len(holds), got, exact)
			}
		}
	}
}

func TestP99OfFewIsTheLongest(t *testing.T) {
	t.Parallel()
	var h histogram
	h.add(time.Millisecond, 1)
	h.add(time.Second, 1)
	if got := h.quantile(0.99); got != time.Second {
		t.Errorf("%v", got)
	}
	if got := h.quantile(0.5); got != time.Millisecond {
		t.Errorf("the median: %v", got)
	}
}

func TestBoundBelongsToItsBucket(t *testing.T) {
	t.Parallel()
	for i, b := range bounds {
		if bucketOf(b) != i || bucketOf(b+1) != i+1 {
			t.Errorf("%v and what is just longer fall into buckets %d and %d, want %d and the next", b, bucketOf(b), bucketOf(b+1), i)
		}
		if i > 0 && (b <= bounds[i-1] || b-bounds[i-1] > bounds[i-1]/8) {
			t.Errorf("%v follows %v", b, bounds[i-1])
		}
	}
	for _, d := range []time.Duration{-time.Second, 0, 1} {
		if got := bucketOf(d); got != 0 {
			t.Errorf("%v falls into bucket %d", d, got)
		}
	}
	if got := bucketOf(never); got != buckets-1 {
		t.Errorf("the longest falls into bucket %d of %d", got, buckets)
	}
}

func TestQuantileOfNothingIsZero(t *testing.T) {
	t.Parallel()
	if got := new(histogram).quantile(0.99); got != 0 {
		t.Errorf("got %v", got)
	}
}

func TestQuantileOfNoNumberIsZero(t *testing.T) {
	t.Parallel()
	var h Histogram
	h.counts.add(time.Second, 1)
	if got := h.Quantile(math.NaN()); got != 0 {
		t.Errorf("got %v", got)
	}
}

func TestConnectionsStrokesAddUp(t *testing.T) {
	t.Parallel()
	var a, b strokes
	a.add(bucketOf(time.Millisecond))
	b.add(bucketOf(time.Millisecond))
	b.add(bucketOf(time.Second))
	var h histogram
	a.addTo(&h)
	b.addTo(&h)
	if h.count() != 3 || h[bucketOf(time.Millisecond)] != 2 {
		t.Errorf("%d in all, %d of a millisecond", h.count(), h[bucketOf(time.Millisecond)])
	}
}
