package partition

import (
	"math"
	"testing"
	"testing/quick"
	"time"
)

func TestSizeIsLittlesLawWithoutFloatNoise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate     float64
		latency  time.Duration
		headroom float64
		want     int
	}{
		{80, 250 * time.Millisecond, 1, 20},
		{80, 250 * time.Millisecond, 1.5, 30},
		{500, 50 * time.Millisecond, 1.6, 40},
		{100, 200 * time.Millisecond, 2, 40},
		{40, 250 * time.Millisecond, 1.2, 12},
		{100, 11 * time.Millisecond, 1, 2},
		{0.001, time.Microsecond, 1, 1},
		{80, 250 * time.Millisecond, 0.2, 20},
		{80, 250 * time.Millisecond, 0, 20},
		{80, 250 * time.Millisecond, -3, 20},
		{math.MaxFloat64, time.Hour, 2, math.MaxInt32},
		{math.SmallestNonzeroFloat64, 1, 1, 1},
	} {
		if got := Size(c.rate, c.latency, c.headroom); got != c.want {
			t.Errorf("Size(%v, %v, %v) = %d, want %d", c.rate, c.latency, c.headroom, got, c.want)
		}
	}
}

func TestSizeOfNothingIsZero(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	for _, got := range []int{
		Size(0, time.Second, 1), Size(-1, time.Second, 1), Size(1, 0, 1), Size(1, -time.Second, 1),
		Size(nan, time.Second, 1), Size(inf, time.Second, 1), Size(-inf, time.Second, 1),
		Size(1, time.Second, nan), Size(1, time.Second, inf), Size(1, time.Second, -inf),
	} {
		if got != 0 {
			t.Errorf("got %d", got)
		}
	}
}

func TestSizeOfAWholeProductIsThatProduct(t *testing.T) {
	t.Parallel()
	whole := func(conns uint16, perMille uint16) bool {
		// conns connections held latency each are conns/latency acquires a second.
		latency := time.Duration(perMille%5000+1) * time.Millisecond
		n := int(conns%5000) + 1
		return Size(float64(n)/latency.Seconds(), latency, 1) == n
	}
	if err := quick.Check(whole, &quick.Config{MaxCount: 20000}); err != nil {
		t.Fatal(err)
	}
}
