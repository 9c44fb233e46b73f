// Package gate bounds how many callers hold a permit at once, and how many may wait for one.
//
// A Gate is a counting semaphore with a bounded queue. It differs from a weighted semaphore in what it promises
// about time: a caller that finds the queue full is turned away at once, one that waits is served strictly in order
// of arrival, and none waits longer than it said.
package gate

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The reasons for which an acquire ends without a permit. In every such case the gate is as if the caller had never
// come. An acquire that ends with its caller's context returns the context's error instead.
var (
	ErrFull    = errors.New("gate: queue is full")
	ErrTimeout = errors.New("gate: no permit within the timeout")
	ErrPaused  = errors.New("gate: paused")
	ErrClosed  = errors.New("gate: closed")
)

// Gate holds the permits of one pool. Use New.
type Gate struct {
	// mu guards every field below, and what the owner of the gate puts under it with Lock. It is a leaf: no other lock
	// is taken, nothing is called and nothing blocks while it is held. (A waiter's channel has room for the one answer
	// that it will ever get.)
	mu sync.Mutex

	limit      int // permits; inUse may exceed it for a while after it shrank
	maxWaiting int
	inUse      int
	queue      queue
	paused     bool
	closed     bool

	peakInUse      int
	acquired       uint64
	waited         uint64
	waitTime       time.Duration
	saturatedSince time.Time // zero while a permit is free
	saturatedTime  time.Duration
}

// Stats is a snapshot of a gate.
type Stats struct {
	Limit, MaxWaiting         int
	InUse, PeakInUse, Waiting int
	Acquired, Waited          uint64        // permits given, and how many of the callers had queued (served or not)
	WaitTime                  time.Duration // in the queue, by all callers together
	SaturatedFor              time.Duration // how long every permit has now been out without a break; 0 if one is free
	SaturatedTime             time.Duration // the same, added up since New
	Paused                    bool
}

// New returns a gate of limit permits and at most maxWaiting waiters. A maxWaiting of zero or less admits no waiter.
func New(limit, maxWaiting int) *Gate {
	g := &Gate{limit: limit, maxWaiting: max(maxWaiting, 0)}
	g.markSaturationLocked()
	return g
}

// Lock locks the gate, for an owner that keeps what belongs to the permits (its idle connections) under the same lock:
// then a permit and a connection are taken, and given back, in one step. Only the methods that end in Locked may be
// called until Unlock.
func (g *Gate) Lock() { g.mu.Lock() }

// Unlock ends Lock.
func (g *Gate) Unlock() { g.mu.Unlock() }

// TryAcquire takes a permit if one is free. It never takes one past a waiter: while somebody waits, none is free.
func (g *Gate) TryAcquire() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.TryAcquireLocked()
}

// TryAcquireLocked is TryAcquire under Lock.
func (g *Gate) TryAcquireLocked() bool {
	if g.paused || !g.takeLocked() {
		return false
	}
	g.acquired++
	return true
}

// SeizeLocked takes a permit whether or not one is free, for what is in use already and has none.
func (g *Gate) SeizeLocked() {
	g.inUse++
	g.markSaturationLocked()
}

// ReserveLocked is TryAcquireLocked for the owner's own upkeep: it works while the gate is paused and is not counted as
// acquired.
func (g *Gate) ReserveLocked() bool { return g.takeLocked() }

func (g *Gate) takeLocked() bool {
	if g.closed || g.inUse >= g.limit || g.queue.len > 0 {
		return false
	}
	g.inUse++
	g.peakInUse = max(g.peakInUse, g.inUse)
	g.markSaturationLocked()
	return true
}

// Acquire takes a permit, waiting for it at most timeout and at most until ctx is done. A timeout of zero or less
// does not wait. It returns ErrFull, ErrTimeout, ErrPaused, ErrClosed or the context's error.
func (g *Gate) Acquire(ctx context.Context, timeout time.Duration) error {
	w, err := g.enter(timeout)
	if w == nil {
		return err
	}
	began := time.Now()
	err = g.wait(ctx, w, timeout)

	g.mu.Lock()
	g.waitTime += time.Since(began)
	g.mu.Unlock()
	return err
}

// enter takes a permit (nil, nil), refuses (nil, err), or queues a waiter.
func (g *Gate) enter(timeout time.Duration) (*waiter, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return nil, ErrClosed
	case g.paused:
		return nil, ErrPaused
	case g.takeLocked():
		g.acquired++
		return nil, nil
	case g.queue.len >= g.maxWaiting:
		return nil, ErrFull
	case timeout <= 0:
		return nil, ErrTimeout
	}
	w := &waiter{answer: make(chan error, 1)}
	g.queue.push(w)
	g.waited++
	return w, nil
}

func (g *Gate) wait(ctx context.Context, w *waiter, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-w.answer:
		return err
	case <-timer.C:
		return g.leave(w, ErrTimeout)
	case <-ctx.Done():
		return g.leave(w, ctx.Err())
	}
}

// leave takes w out of the queue, for reason. A waiter that is no longer in it has been answered in the same
// instant: a permit so granted must not be lost, so who merely ran out of time takes it, and who is no longer there
// to use it gives it back.
func (g *Gate) leave(w *waiter, reason error) error {
	g.mu.Lock()
	queued := g.queue.remove(w)
	g.mu.Unlock()
	if queued {
		return reason
	}
	answer := <-w.answer
	if answer == nil && reason != ErrTimeout {
		g.Release()
		return reason
	}
	return answer
}

// Release gives a permit back, to the longest waiting caller if there is one.
func (g *Gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ReleaseLocked()
}

// ReleaseLocked is Release under Lock.
func (g *Gate) ReleaseLocked() {
	if g.inUse <= 0 {
		panic("bug: gate: more permits released than taken")
	}
	g.inUse--
	g.serveLocked()
}

// serveLocked hands free permits to waiters, in the order of their arrival.
func (g *Gate) serveLocked() {
	for g.queue.len > 0 && g.inUse < g.limit {
		g.inUse++
		g.peakInUse = max(g.peakInUse, g.inUse)
		g.acquired++
		g.queue.pop().answer <- nil
	}
	g.markSaturationLocked()
}

// Resize changes the number of permits. Growing serves waiters at once; shrinking takes effect as permits return.
func (g *Gate) Resize(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = limit
	g.serveLocked()
}

// Pause turns away every new caller, and those who wait, with ErrPaused. Permits that are out are not affected.
func (g *Gate) Pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = true
	g.dismissLocked(ErrPaused)
}

// Resume ends a Pause.
func (g *Gate) Resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = false
}

// Close turns away every caller from now on, and those who wait, with ErrClosed. Permits that are out can still be
// released.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.dismissLocked(ErrClosed)
}

func (g *Gate) dismissLocked(reason error) {
	for g.queue.len > 0 {
		g.queue.pop().answer <- reason
	}
}

// InUseLocked is the number of permits that are out.
func (g *Gate) InUseLocked() int { return g.inUse }

// OverLocked reports whether more permits are out than there are now: the gate has shrunk.
func (g *Gate) OverLocked() bool { return g.inUse > g.limit }

// Stats returns a snapshot.
func (g *Gate) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.StatsLocked()
}

// StatsLocked is Stats under Lock.
func (g *Gate) StatsLocked() Stats {
	s := Stats{
		Limit: g.limit, MaxWaiting: g.maxWaiting,
		InUse: g.inUse, PeakInUse: g.peakInUse, Waiting: g.queue.len,
		Acquired: g.acquired, Waited: g.waited, WaitTime: g.waitTime,
		SaturatedTime: g.saturatedTime, Paused: g.paused,
	}
	if !g.saturatedSince.IsZero() {
		s.SaturatedFor = time.Since(g.saturatedSince)
		s.SaturatedTime += s.SaturatedFor
	}
	return s
}

// markSaturationLocked starts or stops the saturation clock; it reads the time only where the state changes.
func (g *Gate) markSaturationLocked() {
	saturated := g.inUse >= g.limit
	switch {
	case saturated && g.saturatedSince.IsZero():
		g.saturatedSince = time.Now()
	case !saturated && !g.saturatedSince.IsZero():
		g.saturatedTime += time.Since(g.saturatedSince)
		g.saturatedSince = time.Time{}
	}
}
