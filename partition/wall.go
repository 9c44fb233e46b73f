package partition

import (
	"sync"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
)

// wall watches one workload in Observe mode: what it really does in the shared pool, and in trial what its own pool would
// have made of it.
type wall struct {
	pool *Pool // of the workload

	// mu guards everything below. It is a leaf: nothing is called and nothing blocks while it is held.
	mu          sync.Mutex
	inUse, peak int
	waiting     int
	demand      int    // the most that were in use or waiting at once
	begun, gone uint64 // borrowings that began, and callers who left without one
	atOnce      uint64 // of those that began: who found an idle connection at once
	waited      uint64
	waitTime    time.Duration
	fullSince   time.Duration // never: it is not full
	fullTime    time.Duration
	fullTold    time.Duration // the most that was read
	tally       tally
	holds       histogram
	overLimit   uint64 // held for longer than the pool's StatementTimeout
	rates       rates
	trial       trial
}

func newWall(p *Pool) *wall {
	w := &wall{pool: p, fullSince: never}
	w.rates.begin(driver.Now())
	return w
}

// begin notes that a caller who came at arrived has had its connection since t.
func (w *wall) begin(arrived, t time.Duration, atOnce bool) *visit {
	v := &visit{arrived: arrived, began: t, place: nowhere}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteRateLocked(t)
	w.begun++
	if atOnce {
		w.atOnce++
	}
	w.inUse++
	w.peak = max(w.peak, w.inUse)
	w.demand = max(w.demand, w.inUse+w.waiting)
	w.markLocked(t)
	w.trial.enter(v, t, w.limitsLocked())
	return v
}

// end notes that the caller has given it back.
func (w *wall) end(v *visit, held time.Duration) {
	t := v.began + held
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inUse--
	w.markLocked(t)
	w.tally = w.tally.add(tally{1, held, held})
	w.holds.add(held, 1)
	if limit := w.pool.config.Load().StatementTimeout; limit > 0 && held > limit {
		w.overLimit++
	}
	w.trial.leave(v, held, t, w.limitsLocked())
}

// left notes a caller who came and got no connection.
func (w *wall) left() {
	t := driver.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteRateLocked(t)
	w.gone++
}

// queued notes a caller that has to wait for the shared pool. What it returns is called when that is over.
func (w *wall) queued() (served func()) {
	began := driver.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteRateLocked(began)
	w.waiting++
	w.waited++
	w.demand = max(w.demand, w.inUse+w.waiting)
	return func() {
		took := driver.Now() - began
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting--
		w.waitTime += took
	}
}

// resized notes that the pool has another size.
func (w *wall) resized() {
	t := driver.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.markLocked(t)
}

func (w *wall) arrivalsLocked() uint64 { return w.begun + w.gone + uint64(w.waiting) }

// noteRateLocked is called for who comes at t, before he is counted.
func (w *wall) noteRateLocked(t time.Duration) { w.rates.noteLocked(t, w.arrivalsLocked()) }

// markLocked starts or stops the clock that runs while the workload holds as many connections as its pool would have.
func (w *wall) markLocked(t time.Duration) {
	full := w.inUse >= int(w.pool.limit.Load())
	switch {
	case full && w.fullSince == never:
		w.fullSince = t
	case !full && w.fullSince != never:
		w.fullTime += max(t-w.fullSince, 0)
		w.fullSince = never
	}
}

// fullLocked is how long that clock has run, without a break and in all. It does not go back, although a borrowing may end at
// a time that was read before t.
func (w *wall) fullLocked(t time.Duration) (current, total time.Duration) {
	if w.fullSince != never {
		current = max(t-w.fullSince, 0)
	}
	w.fullTold = max(w.fullTold, w.fullTime+current)
	return current, w.fullTold
}

func (w *wall) limitsLocked() limits {
	c := w.pool.config.Load()
	l := limits{conns: int(w.pool.limit.Load()), waiting: max(c.MaxWaiting, 0), timeout: max(c.AcquireTimeout, 0)}
	if w.tally.ended > 0 {
		l.usual = 2 * w.tally.total / time.Duration(w.tally.ended)
	}
	l.recent = w.tally.mean
	return l
}

// describe puts what the wall knows in place of what a gate would.
func (w *wall) describe(s *Stats) {
	t := driver.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Open, s.InUse, s.PeakInUse, s.Waiting = w.inUse, w.inUse, w.peak, w.waiting
	s.Acquired, s.Waited, s.WaitTime = w.begun, w.waited, w.waitTime
	s.Held, s.HoldTime, s.HoldMean = w.tally.ended, w.tally.total, w.tally.mean
	s.SaturatedFor, s.SaturatedTime = w.fullLocked(t)
}

// evidence is what a plan needs to know.
func (w *wall) evidence(t time.Duration) evidence {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, full := w.fullLocked(t)
	w.trial.decide(t, w.limitsLocked())
	e := evidence{Evidence: Evidence{
		Arrivals: w.arrivalsLocked(), PeakInUse: w.peak, PeakDemand: w.demand, Saturated: full,
		Waited: w.trial.waited, RejectedQueueFull: w.trial.full, RejectedTimeout: w.trial.late,
		RejectedUsual: w.trial.usual, StatementTimeouts: w.overLimit, CallerGaveUp: w.pool.counters.gaveUp.Load(),
	}, holds: w.holds}
	e.PeakRate = w.rates.peakLocked(t, e.Arrivals)
	return e
}
