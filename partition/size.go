package partition

import (
	"math"
	"time"
)

// Size returns how many connections a pool needs by Little's law: the smallest
// whole number not below ratePerSecond × latency × headroom.
//
//   - ratePerSecond is how often a connection is acquired, at the peak that the
//     pool is to carry. Retries are acquires too: they multiply the rate.
//   - latency is how long one acquire holds its connection on average, from the
//     acquire to the return, not how long a query runs: a transaction holds its
//     connection between its statements too, and rows until they are closed.
//   - headroom is the factor for bursts over that average: 1.2 for steady work,
//     2 and more for spiky work. Below 1 it is treated as 1, since less than the
//     average need is a queue that only grows.
//
// The result is at least 1 for positive input, and at most [math.MaxInt32]. It
// is 0, which in MaxOpenConns means the default, if ratePerSecond or latency is
// zero or negative, or if any input is infinite or not a number.
//
// Do not use it beyond what the server can run at once: a server is not made
// faster by more connections than it has cores and disks to serve.
func Size(ratePerSecond float64, latency time.Duration, headroom float64) int {
	need := ratePerSecond * latency.Seconds() * math.Max(headroom, 1)
	if !(ratePerSecond > 0) || latency <= 0 || math.IsNaN(need) || math.IsInf(ratePerSecond, 0) || math.IsInf(headroom, 0) {
		return 0
	}
	// Binary fractions are inexact: 500/s × 50ms × 1.6 comes out a hair over 40.
	// A hair is not a connection.
	need = math.Ceil(need * (1 - 1e-9))
	return int(math.Min(math.Max(need, 1), math.MaxInt32))
}
