package partition

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram counts durations in buckets of which eight follow one another from a power of two to the next. So a quantile
// is at most an eighth too long, never too short, and the memory is the same for a minute and for a year. Everything below
// firstOctave is one bucket, everything from the last bucket on another.
const (
	subBits     = 3
	firstOctave = 10 // 2^10 ns, a microsecond
	octaves     = 33 // up to 2 hours and 26 minutes
	buckets     = octaves<<subBits + 1
)

// bucketOf is the bucket that d falls into.
func bucketOf(d time.Duration) int {
	if d < 1<<firstOctave {
		return 0
	}
	exponent := bits.Len64(uint64(d)) - 1
	sub := int(d>>(exponent-subBits)) & (1<<subBits - 1)
	return min((exponent-firstOctave)<<subBits+sub+1, buckets-1)
}

// bucketEnd is the least duration that is past bucket i.
func bucketEnd(i int) time.Duration {
	exponent, sub := firstOctave+i>>subBits, i&(1<<subBits-1)
	return time.Duration(1<<subBits+sub) << (exponent - subBits)
}

// histogram is one that a lock guards.
type histogram [buckets]uint64

func (h *histogram) add(d time.Duration, weight uint64) { h[bucketOf(d)] += weight }

func (h *histogram) count() (n uint64) {
	for _, c := range h {
		n += c
	}
	return n
}

// quantile is the duration that a part q of all do not exceed; 0 of none.
func (h *histogram) quantile(q float64) time.Duration {
	n := h.count()
	if n == 0 {
		return 0
	}
	last := uint64(q * float64(n-1))
	for i, seen := 0, uint64(0); ; i++ {
		if seen += h[i]; seen > last {
			return bucketEnd(i)
		}
	}
}

// strokes is the histogram of one connection, which its borrower alone writes and anybody may read.
type strokes [buckets]atomic.Uint64

func (s *strokes) add(d time.Duration) {
	b := &s[bucketOf(d)]
	b.Store(b.Load() + 1)
}

// addTo adds what was counted so far.
func (s *strokes) addTo(h *histogram) {
	for i := range s {
		h[i] += s[i].Load()
	}
}
