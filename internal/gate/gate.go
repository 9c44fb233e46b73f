// Package gate bounds how many callers hold a permit at once, and how many may wait for one.
//
// A Gate is a counting semaphore with a bounded queue. It differs from a weighted semaphore in what it promises
// about time: a caller that finds the queue full is turned away at once, one that waits is served strictly in order
// of arrival, and none waits longer than it said.
//
// # Parked permits
//
// A lock that every call takes twice is what limits a busy pool: where the processors are all in use, whoever holds it is
// sometimes put aside by the operating system, and everybody else queues up behind. So a permit may be parked: it stays
// out, and with whatever its owner gave it for, but counts as free. The next call that wants the same thing takes it up
// again, without the lock (it wins it by a compare-and-swap of the owner's). Only a caller for whom no permit is left
// has the owner give up a parked one. Parking is possible while the gate is calm; as soon as somebody waits, each permit
// that comes back goes by way of the lock, and is handed to who came first.
package gate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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

	// Written under mu alone, and read without it.
	limit atomic.Int64 // permits; out may exceed it for a while after it shrank
	out   atomic.Int64 // permits that are out, parked ones included
	calm  atomic.Bool  // what Calm says; kept by Unlock

	maxWaiting int
	queue      queue
	spare      *Waiter // those whose wait is over, linked by next
	paused     bool
	closed     bool
	clock      func() time.Duration // see New
	reclaim    func() bool          // see New
	waited     uint64
	waitTime   time.Duration

	saturatedTold time.Duration // the most that Stats has said

	// What is written all the time has a cache line for itself: it shares none with what is read all the time, and is in one
	// piece. (256 bytes is a size that the allocator aligns.)
	_ [72]byte

	// Counted without mu.
	parked   atomic.Int64
	acquired atomic.Uint64
	saturation
	peak atomic.Int64 // the most that ever were in use

	_ [24]byte
}

// Stats is a snapshot of a gate.
type Stats struct {
	Limit, MaxWaiting         int
	InUse, PeakInUse, Waiting int
	Parked                    int           // out, and in use by nobody
	Acquired, Waited          uint64        // permits given, and how many of the callers had queued (served or not)
	WaitTime                  time.Duration // in the queue, by all callers together
	SaturatedFor              time.Duration // how long every permit has now been out without a break; 0 if one is free
	SaturatedTime             time.Duration // the same, added up since New
	Paused                    bool
}

// New returns a gate of limit permits and at most maxWaiting waiters. A maxWaiting of zero or less admits no waiter.
//
// reclaim is called under Lock when no permit is left. It takes back one that is parked, with ReleaseParkedLocked, and
// reports whether there was one. It is nil where the owner parks none. The clock is the owner's; any that goes on evenly
// will do.
func New(limit, maxWaiting int, clock func() time.Duration, reclaim func() bool) *Gate {
	if reclaim == nil {
		reclaim = func() bool { return false }
	}
	g := &Gate{maxWaiting: max(maxWaiting, 0), clock: clock, reclaim: reclaim}
	g.saturation.since.Store(free)
	g.Resize(limit)
	return g
}

// Lock locks the gate, for an owner that keeps what belongs to the permits (its idle connections) under the same lock:
// then a permit and a connection are taken, and given back, in one step. Only the methods that end in Locked may be
// called until Unlock.
func (g *Gate) Lock() { g.mu.Lock() }

// Unlock ends Lock.
func (g *Gate) Unlock() {
	if calm := !g.closed && !g.paused && g.queue.len == 0 && g.out.Load() <= g.limit.Load(); calm != g.calm.Load() {
		g.calm.Store(calm)
	}
	g.mu.Unlock()
}

// TryAcquire takes a permit if one is free. It never takes one past a waiter: while somebody waits, none is free.
func (g *Gate) TryAcquire() bool {
	g.mu.Lock()
	defer g.Unlock()
	return g.TryAcquireLocked()
}

// TryAcquireLocked is TryAcquire under Lock.
func (g *Gate) TryAcquireLocked() bool {
	if g.paused || !g.takeLocked() {
		return false
	}
	g.acquired.Add(1)
	return true
}

// SeizeLocked takes a permit whether or not one is free, for what is in use already and has none.
func (g *Gate) SeizeLocked() { g.addLocked(1) }

// ReserveLocked is TryAcquireLocked for the owner's own upkeep: it works while the gate is paused, takes no parked
// permit, and is not counted as acquired.
func (g *Gate) ReserveLocked() bool {
	if g.closed || g.queue.len > 0 || g.out.Load() >= g.limit.Load() {
		return false
	}
	g.addLocked(1)
	return true
}

// takeLocked says that the gate is no longer calm before it looks for a parked permit. So either it finds the permit
// that somebody is parking now, or that somebody sees it and gives the permit back instead: see Calm.
func (g *Gate) takeLocked() bool {
	if g.closed || g.queue.len > 0 {
		return false
	}
	if g.out.Load() >= g.limit.Load() {
		g.calm.Store(false)
		if !g.reclaim() || g.out.Load() >= g.limit.Load() {
			return false
		}
	}
	g.addLocked(1)
	return true
}

func (g *Gate) addLocked(n int64) {
	g.out.Add(n)
	g.used(unread)
}

// Enter takes a permit (nil, nil), refuses (nil, err) with ErrFull, ErrPaused or ErrClosed, or returns a place in the queue,
// which has to be given to Wait. Without patience it refuses with ErrTimeout instead.
func (g *Gate) Enter(patience bool) (*Waiter, error) {
	g.mu.Lock()
	defer g.Unlock()
	switch {
	case g.closed:
		return nil, ErrClosed
	case g.paused:
		return nil, ErrPaused
	case g.takeLocked():
		g.acquired.Add(1)
		return nil, nil
	case g.queue.len >= g.maxWaiting:
		return nil, ErrFull
	case !patience:
		return nil, ErrTimeout
	}
	w := g.waiterLocked()
	g.queue.push(w)
	g.waited++
	return w, nil
}

// Wait waits for the permit at most timeout, and at most until ctx is done. It returns ErrTimeout, ErrPaused, ErrClosed or the
// context's error. The waiter is not the caller's any more then: the next one may get it.
func (g *Gate) Wait(ctx context.Context, w *Waiter, timeout time.Duration) error {
	began := time.Now()
	err := g.wait(ctx, w, timeout)
	unfired := w.timer.Stop()

	g.mu.Lock()
	g.waitTime += time.Since(began)
	if unfired { // with GODEBUG=asynctimerchan=1 another's tick may yet be in its channel
		w.next, g.spare = g.spare, w
	}
	g.Unlock()
	return err
}

func (g *Gate) wait(ctx context.Context, w *Waiter, timeout time.Duration) error {
	w.timer.Reset(timeout)
	select {
	case err := <-w.answer:
		return err
	case <-w.timer.C:
		return g.leave(w, ErrTimeout)
	case <-ctx.Done():
		return g.leave(w, ctx.Err())
	}
}

// leave takes w out of the queue, for reason. A waiter that is no longer in it has been answered in the same
// instant: a permit so granted must not be lost, so who merely ran out of time takes it, and who is no longer there
// to use it gives it back.
func (g *Gate) leave(w *Waiter, reason error) error {
	g.mu.Lock()
	queued := g.queue.remove(w)
	g.Unlock()
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
	defer g.Unlock()
	g.ReleaseLocked()
}

// ReleaseLocked is Release under Lock.
func (g *Gate) ReleaseLocked() {
	if g.out.Load() <= 0 {
		panic("bug: gate: more permits released than taken")
	}
	g.out.Add(-1)
	g.serveLocked()
}

// serveLocked hands free permits to waiters, in the order of their arrival.
func (g *Gate) serveLocked() {
	for g.queue.len > 0 && g.out.Load() < g.limit.Load() {
		g.addLocked(1)
		g.acquired.Add(1)
		g.queue.pop().answer <- nil
	}
	g.saturation.mark(g, unread)
}

// Resize changes the number of permits. Growing serves waiters at once; shrinking takes effect as permits return.
func (g *Gate) Resize(limit int) {
	g.mu.Lock()
	defer g.Unlock()
	g.limit.Store(int64(limit))
	g.serveLocked()
}

// Bound changes how many callers may wait. Those who do already go on waiting.
func (g *Gate) Bound(maxWaiting int) {
	g.mu.Lock()
	defer g.Unlock()
	g.maxWaiting = max(maxWaiting, 0)
}

// Pause turns away every new caller, and those who wait, with ErrPaused. Permits that are out are not affected.
func (g *Gate) Pause() {
	g.mu.Lock()
	defer g.Unlock()
	g.paused = true
	g.dismissLocked(ErrPaused)
}

// Resume ends a Pause.
func (g *Gate) Resume() {
	g.mu.Lock()
	defer g.Unlock()
	g.paused = false
}

// Close turns away every caller from now on, and those who wait, with ErrClosed. Permits that are out can still be
// released.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.Unlock()
	g.closed = true
	g.dismissLocked(ErrClosed)
}

func (g *Gate) dismissLocked(reason error) {
	for g.queue.len > 0 {
		g.queue.pop().answer <- reason
	}
}

// OutLocked is the number of permits that are out, parked ones included.
func (g *Gate) OutLocked() int { return int(g.out.Load()) }

// OverLocked reports whether more permits are out than there are now: the gate has shrunk.
func (g *Gate) OverLocked() bool { return g.out.Load() > g.limit.Load() }

// Stats returns a snapshot.
func (g *Gate) Stats() Stats {
	g.mu.Lock()
	defer g.Unlock()
	return g.StatsLocked()
}

// StatsLocked is Stats under Lock.
func (g *Gate) StatsLocked() Stats {
	s := Stats{
		Limit: int(g.limit.Load()), MaxWaiting: g.maxWaiting,
		InUse: int(g.inUse()), Parked: int(g.parked.Load()), PeakInUse: int(g.peak.Load()), Waiting: g.queue.len,
		Acquired: g.acquired.Load(), Waited: g.waited, WaitTime: g.waitTime, Paused: g.paused,
	}
	s.SaturatedFor, s.SaturatedTime = g.saturation.readLocked(g)
	return s
}

// inUse is how many permits are out and not parked.
func (g *Gate) inUse() int64 { return g.out.Load() - g.parked.Load() }

// used notes that one permit more is in use, from the time t.
func (g *Gate) used(t int64) {
	n := min(g.inUse(), g.limit.Load()) // what was seized is on its way out
	for peak := g.peak.Load(); n > peak; peak = g.peak.Load() {
		if g.peak.CompareAndSwap(peak, n) {
			break
		}
	}
	g.saturation.mark(g, t)
}
