package partition

import (
	"testing"
	"time"
)

func TestPeakRateIsThatOfTheBusiestSpan(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, c := range map[string]struct {
		arrivals []time.Duration
		now      time.Duration
		want     float64
	}{
		"a steady stream":               {every(s/10, 0, 60*s), 60 * s, 10},
		"an hour's silence is not over": {append(every(s/10, 0, 15*s), 3600*s), 3600 * s, 10},
		"a burst after silence":         {append(every(s, 0, 100*s), every(s/100, 5000*s, 5012*s)...), 5012 * s, 100},
		"a short window":                {every(s/4, 0, 4*s), 4 * s, 4},
		"less than a second":            {every(s/100, 0, s/10), s / 10, 10},
	} {
		var r rates
		r.begin(0)
		var n uint64
		for _, at := range c.arrivals {
			r.noteLocked(at, n)
			n++
		}
		if got := r.peakLocked(c.now, n); got < 0.9*c.want || got > 1.15*c.want {
			t.Errorf("%s: %v a second, want %v", name, got, c.want)
		}
	}
}

func every(d, from, to time.Duration) (times []time.Duration) {
	for at := from + d; at <= to; at += d {
		times = append(times, at)
	}
	return times
}

func TestCountThatIsLessForAMomentIsNoCrowd(t *testing.T) {
	t.Parallel()
	var r rates
	r.begin(0)
	r.noteLocked(10*time.Second, 20)
	r.noteLocked(20*time.Second, 19)
	if got := r.peakLocked(26*time.Second, 19); got != 2 {
		t.Errorf("%v a second, want 2", got)
	}
}
