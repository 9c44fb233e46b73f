package debugpage

import (
	"sync"
	"time"
	"weak"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

const (
	every = 2 * time.Second // a pool's statistics are read this often
	kept  = 150             // samples: five minutes
)

// history is the last minutes of each pool, so that a page which is opened in an incident shows how it began. It is as
// large on the first day as it is after a year.
type history struct {
	registry *partition.Registry
	pools    []*partition.Pool

	mu    sync.Mutex // guards the fields below; taken before the pools' own locks
	rings []ring     // in the order of pools
	taken int        // samples so far
	at    time.Time  // of the last one
}

// ring is the samples of one pool; the oldest is overwritten.
type ring struct {
	samples  [kept]sample
	rejected uint64 // so far
}

// sample is small, since a registry may have a thousand pools.
type sample struct {
	inUse, waiting uint32
	rejections     float32 // a second, since the sample before
}

// newHistory returns a history that grows by itself until the registry is closed, or nobody has the history any more.
func newHistory(r *partition.Registry) *history {
	h := &history{registry: r, pools: r.Pools(), at: time.Now()}
	h.rings = make([]ring, len(h.pools))
	for i, p := range h.pools {
		h.rings[i].rejected = rejected(p.Stats())
	}
	h.next()
	return h
}

// next arranges for the next sample. A timer, since a goroutine would outlive the registry for a while; a weak pointer,
// since a handler that somebody makes for each request must not be sampling for ever.
func (h *history) next() {
	w := weak.Make(h)
	time.AfterFunc(every, func() {
		if h := w.Value(); h != nil && h.open() {
			h.take(time.Now())
			h.next()
		}
	})
}

// open is false once the registry is closed.
func (h *history) open() bool {
	if len(h.pools) == 0 {
		return false
	}
	_, ok := partition.RegistryOf(h.pools[0].DB())
	return ok
}

// take takes a sample of each pool.
func (h *history) take(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	elapsed := max(t.Sub(h.at), time.Millisecond)
	for i, p := range h.pools {
		h.rings[i].add(h.taken, p.Stats(), elapsed)
	}
	h.taken++
	h.at = t
}

func (r *ring) add(n int, s partition.Stats, elapsed time.Duration) {
	total := rejected(s)
	r.samples[n%kept] = sample{
		inUse: uint32(s.InUse), waiting: uint32(s.Waiting),
		rejections: float32(float64(total-r.rejected) / elapsed.Seconds()),
	}
	r.rejected = total
}

func rejected(s partition.Stats) uint64 {
	return s.RejectedQueueFull + s.RejectedTimeout + s.RejectedPaused
}

// series is the last minutes of a pool, the oldest sample first.
type series struct {
	Every      seconds   `json:"every_seconds"`
	InUse      []float32 `json:"in_use"`
	Waiting    []float32 `json:"waiting"`
	Rejections []float32 `json:"rejections_per_second"`
}

// series returns that of each pool, in the order of the registry's.
func (h *history) series() []series {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]series, len(h.rings))
	for i := range h.rings {
		all[i] = h.rings[i].series(h.taken)
	}
	return all
}

func (r *ring) series(taken int) series {
	n := min(taken, kept)
	s := series{seconds(every), make([]float32, n), make([]float32, n), make([]float32, n)}
	for i := range n {
		at := r.samples[(taken-n+i)%kept]
		s.InUse[i], s.Waiting[i], s.Rejections[i] = float32(at.inUse), float32(at.waiting), at.rejections
	}
	return s
}
