package partition

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Stats is a snapshot of a pool. Times are totals since Open unless they say otherwise.
type Stats struct {
	Workload workload.Name

	MaxOpenConns int
	Open         int // physical connections, in use or idle
	InUse        int // permits that are out, connections being dialed or closed included
	PeakInUse    int // the most that ever were
	Idle         int
	Waiting      int // callers in the queue
	MaxWaiting   int
	Paused       bool

	Acquired          uint64        // acquires that got their permit
	Waited            uint64        // acquires that had to queue, whatever came of it
	WaitTime          time.Duration // in the queue, all callers together
	RejectedQueueFull uint64
	RejectedTimeout   uint64
	RejectedPaused    uint64
	CallerGaveUp      uint64 // the caller's own context ended first
	StatementTimeouts uint64
	Opened            uint64
	Closed            uint64
	OpenFailures      uint64

	// Statements whose callers were cancelled or ran out of time while they ran. Until the end is known the permit counts as
	// in use.
	Ending         int
	EndedConfirmed uint64 // the server says that it is gone
	EndedForced    uint64 // so it does, after its session had to be killed or its socket closed
	EndedUnknown   uint64 // the server could not be asked, or did not end it in time
	// EndProblem is why statements could not be ended on the server of late: a missing privilege, a proxy in between. Empty:
	// nothing is known to be wrong.
	EndProblem string

	Leaked    uint64 // borrowings longer than LeakAfter
	Reclaimed uint64 // connections taken back: MaxHold, or Drain

	Held     uint64        // borrowings that have ended
	HoldTime time.Duration // how long they lasted, together
	HoldMean time.Duration // of late: an average that forgets

	SaturatedFor  time.Duration // how long every permit has been out without a break; 0 if one is free
	SaturatedTime time.Duration

	// Enforcement is what enforces the statement timeout: a stmttimeout.Enforcement, as the last connection that was
	// opened reported it. Empty: none was opened yet, or the mode is Observe, in which nothing is enforced.
	Enforcement string
}

// Stats returns a snapshot. What it means in Observe mode is said there.
func (p *Pool) Stats() Stats {
	s := p.stats()
	if p.wall != nil {
		p.wall.describe(&s)
	}
	return s
}

func (p *Pool) stats() Stats {
	p.gate.Lock()
	defer p.gate.Unlock()
	g, c := p.gate.StatsLocked(), &p.counters
	s := Stats{
		Workload:     p.name,
		MaxOpenConns: g.Limit, InUse: g.InUse, PeakInUse: g.PeakInUse,
		Open: int(p.open.Load()), Waiting: g.Waiting, MaxWaiting: g.MaxWaiting, Paused: g.Paused,
		Acquired: g.Acquired, Waited: g.Waited, WaitTime: g.WaitTime,
		RejectedQueueFull: c.queueFull.Load(), RejectedTimeout: c.timeout.Load(), RejectedPaused: c.paused.Load(),
		CallerGaveUp: c.gaveUp.Load(), StatementTimeouts: c.statementTimeouts.Load(),
		Opened: c.opened.Load(), Closed: c.closed.Load(), OpenFailures: c.openFailures.Load(),
		Ending: int(c.ending.Load()), EndedConfirmed: c.confirmed.Load(), EndedForced: c.forced.Load(), EndedUnknown: c.unknown.Load(),
		EndProblem: p.server.control.trouble(), Leaked: c.leaked.Load(), Reclaimed: c.reclaimed.Load(),
		SaturatedFor: g.SaturatedFor, SaturatedTime: g.SaturatedTime,
	}
	if e := p.enforcement.Load(); e != nil {
		s.Enforcement = string(*e)
	}
	s.Idle = len(p.idle) + g.Parked
	held := p.holdsLocked()
	s.Held, s.HoldTime, s.HoldMean = held.ended, held.total, held.mean
	return s
}

// counters of a pool that are not counted under a lock anyway.
type counters struct {
	queueFull, timeout, paused, gaveUp atomic.Uint64
	statementTimeouts                  atomic.Uint64
	opened, closed, openFailures       atomic.Uint64
	ending                             atomic.Int64
	confirmed, forced, unknown         atomic.Uint64
	leaked, reclaimed                  atomic.Uint64
	usual                              atomic.Uint64 // turned away while nobody held for longer than usual
}

// refused counts an acquire that ended without a connection.
func (c *counters) refused(err error) {
	var e *AcquireError
	if !errors.As(err, &e) {
		return
	}
	switch e.Reason {
	case ReasonQueueFull:
		c.queueFull.Add(1)
	case ReasonAcquireTimeout:
		c.timeout.Add(1)
	case ReasonPaused:
		c.paused.Add(1)
	case ReasonCallerGaveUp:
		c.gaveUp.Add(1)
	}
}

// tally is how long connections were held.
type tally struct {
	ended uint64
	total time.Duration
	mean  time.Duration // exponential, over some holdMemory borrowings
}

const holdMemory = 16

func (t tally) add(o tally) tally {
	mine, theirs := time.Duration(min(t.ended, holdMemory)), time.Duration(min(o.ended, holdMemory))
	if theirs == 0 {
		return t
	}
	return tally{t.ended + o.ended, t.total + o.total, (mine*t.mean + theirs*o.mean) / (mine + theirs)}
}

// holds is the tally of one connection while it is out. Each counts for itself, so that processors which end borrowings at
// the same time do not wait for one another's writes. Its borrower alone writes.
type holds struct {
	ended       atomic.Uint64
	total, mean atomic.Int64
}

func (h *holds) end(held time.Duration) {
	n := h.ended.Load() + 1
	mean := h.mean.Load()
	h.mean.Store(mean + (int64(held)-mean)/int64(min(n, holdMemory)))
	h.total.Store(h.total.Load() + int64(held))
	h.ended.Store(n)
}

func (h *holds) read() tally {
	return tally{h.ended.Load(), time.Duration(h.total.Load()), time.Duration(h.mean.Load())}
}

// take returns the tally and begins anew.
func (h *holds) take() tally {
	t := h.read()
	h.ended.Store(0)
	h.total.Store(0)
	return t
}

func (p *Pool) holdsLocked() tally {
	t := p.holds
	for _, m := range p.out {
		t = t.add(m.holds.read())
	}
	return t
}

// holdSample is how many of the connections that are out tell how long they have been: a rejection must not take longer
// the larger the pool is.
const holdSample = 32

// expectedHoldLocked is how long a permit is likely to be held: as of late, or longer if those that are out now have been.
func (p *Pool) expectedHoldLocked(t time.Duration) time.Duration {
	var sum, n time.Duration
	held := p.holds
	for _, m := range p.out[:min(len(p.out), holdSample)] {
		if h, since := m.loan.get(); h == borrowed {
			sum += t - since
			n++
		}
		held = held.add(m.holds.read())
	}
	return max(held.mean, sum/max(n, 1))
}
