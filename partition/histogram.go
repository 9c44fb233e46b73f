package partition

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// Histogram is how long something lasted, of all since Open. The pools keep it anyway, so that a system of metrics that reads
// it costs a call nothing. The upper bounds of its buckets are, in each decade from 1µs to 2h46m40s, 1, 1.1, 1.2, 1.35, 1.5,
// 1.6, 1.8, 2, 2.25, 2.5, 2.75, 3, 3.2, 3.6, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8 and 9.
type Histogram struct {
	Count uint64
	// Sum is of all durations. One that ends meanwhile may be in Count and not yet in Sum, or the other way round.
	Sum time.Duration

	counts histogram
}

// HistogramBound returns the bound of a [Histogram]'s buckets that is nearest to d: d itself, if it is one.
func HistogramBound(d time.Duration) time.Duration {
	i, _ := slices.BinarySearch(bounds[:], d)
	if i == finite || i > 0 && d-bounds[i-1] < bounds[i]-d {
		i--
	}
	return bounds[i]
}

// Quantile returns the duration that a part q of all do not exceed, q being from 0 to 1: at most an eighth too long. It is 0 of
// none, and if q is not a number, and else at least 1µs.
func (h Histogram) Quantile(q float64) time.Duration {
	if math.IsNaN(q) {
		return 0
	}
	return h.counts.quantile(min(max(q, 0), 1))
}

// AtMost returns, for limits that ascend, how many lasted no longer than each. It is exact for limits that are bounds (see
// [HistogramBound]); any other counts as the bound below it.
func (h Histogram) AtMost(limits []time.Duration) []uint64 {
	atMost, n, i := make([]uint64, len(limits)), uint64(0), 0
	for l, limit := range limits {
		for i < finite && bounds[i] <= limit {
			n += h.counts[i]
			i++
		}
		atMost[l] = n
	}
	return atMost
}

func newHistogram(counts histogram, sum time.Duration) Histogram {
	return Histogram{counts.count(), sum, counts}
}

// steps are the bounds of a decade, in hundredths. A bound belongs to its bucket, and is at most an eighth more than the one
// before. So a quantile is never too short and at most an eighth too long; the bounds that systems of metrics ask for are among
// them; and the memory is the same for a minute and for a year.
var steps = [...]time.Duration{
	100, 110, 120, 135, 150, 160, 180, 200, 225, 250, 275, 300,
	320, 360, 400, 450, 500, 550, 600, 650, 700, 750, 800, 900,
}

const (
	decades = 10                     // up to 2 hours and 46 minutes
	finite  = decades*len(steps) + 1 // buckets with an upper bound
	buckets = finite + 1             // and the one of what is longer
	subBits = 3                      // cells are eighths of an octave
	cells   = (44 - firstOctave) << subBits
	// shortest and longest are the first bound and the last.
	shortest, longest = time.Microsecond, 10_000 * time.Second
	// firstOctave is that of the first bound: 2^9 ns are less than a microsecond.
	firstOctave = 9
)

var (
	bounds = newBounds()
	starts = newStarts()
)

func newBounds() (ends [finite]time.Duration) {
	unit := shortest / 100
	for i := range ends {
		if i > 0 && i%len(steps) == 0 {
			unit *= 10
		}
		ends[i] = steps[i%len(steps)] * unit
	}
	return ends
}

// newStarts finds for each cell the first bucket that any duration in it falls into. The right one is at most a few further.
func newStarts() (first [cells]uint8) {
	for c := range first {
		least := time.Duration(1<<subBits+c&(1<<subBits-1)) << (firstOctave + c>>subBits - subBits)
		i, _ := slices.BinarySearch(bounds[:], least)
		first[c] = uint8(i)
	}
	return first
}

// bucketOf is the bucket that d falls into.
func bucketOf(d time.Duration) int {
	switch {
	case d <= shortest:
		return 0
	case d > longest:
		return finite
	}
	exponent := bits.Len64(uint64(d)) - 1
	i := int(starts[(exponent-firstOctave)<<subBits+int(d>>(exponent-subBits))&(1<<subBits-1)])
	for d > bounds[i] {
		i++
	}
	return i
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

// quantile is the duration that a part q of all do not exceed; 0 of none. What is past the last bound counts as that.
func (h *histogram) quantile(q float64) time.Duration {
	n := h.count()
	if n == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(q*float64(n))), 1)
	for i, seen := 0, uint64(0); ; i++ {
		if seen += h[i]; seen >= rank {
			return bounds[min(i, finite-1)]
		}
	}
}

// strokes is the histogram of one connection, which its borrower alone writes and anybody may read.
type strokes [buckets]atomic.Uint64

func (s *strokes) add(bucket int) { s[bucket].Store(s[bucket].Load() + 1) }

// addTo adds what was counted so far.
func (s *strokes) addTo(h *histogram) {
	for i := range s {
		h[i] += s[i].Load()
	}
}

// sharedHistogram is one that many write at once.
type sharedHistogram struct {
	counts strokes
	sum    atomic.Int64
}

func (s *sharedHistogram) add(d time.Duration) {
	s.counts[bucketOf(d)].Add(1)
	s.sum.Add(int64(d))
}
