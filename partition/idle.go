package partition

import (
	"slices"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
)

// The idle list. Whoever takes a connection from it holds a permit first; whoever puts one back still does. The clock is
// read before the gate is locked: to read it takes as long as all that is done under the lock.

// tryLend takes a permit and an idle connection, or nothing. It looks for the connection first, so that a permit is
// never taken, and somebody else turned away, for nothing.
func (p *Pool) tryLend() *member {
	t := driver.Now()
	p.gate.Lock()
	defer p.gate.Unlock()
	if len(p.idle) == 0 || !p.gate.TryAcquireLocked() {
		return nil
	}
	return p.lendLocked(t)
}

// lend takes an idle connection for a caller that has its permit. If there is none the caller may dial one, unless the
// pool has shrunk meanwhile, or shrunk and grown, and still has as many connections as it may: then again is true, and the
// permit is taken back.
func (p *Pool) lend() (m *member, again bool) {
	t := driver.Now()
	p.gate.Lock()
	defer p.gate.Unlock()
	if len(p.idle) > 0 {
		return p.lendLocked(t), false
	}
	if again = p.gate.OverLocked(); again {
		p.gate.ReleaseLocked()
	}
	return nil, again
}

func (p *Pool) lendLocked(t time.Duration) *member {
	last := len(p.idle) - 1
	m := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	m.expired = m.expiresAt() <= t
	p.holdLocked(m, t)
	return m
}

// hold begins the borrowing of a connection that was just dialed.
func (p *Pool) hold(m *member) {
	t := driver.Now()
	p.gate.Lock()
	defer p.gate.Unlock()
	p.holdLocked(m, t)
}

func (p *Pool) holdLocked(m *member, t time.Duration) {
	m.since = t
	p.holds.begin(t)
}

// settle ends the borrowing of a connection that will be closed. Its permit stays.
func (p *Pool) settle(m *member) (held time.Duration) {
	t := driver.Now()
	p.gate.Lock()
	defer p.gate.Unlock()
	return p.settleLocked(m, t)
}

func (p *Pool) settleLocked(m *member, t time.Duration) (held time.Duration) {
	held = t - m.since
	p.holds.end(m.since, held)
	return held
}

// takeBack ends the borrowing of a sound connection: it goes back on the list, and its permit to the gate. If there is
// a reason not to keep it, both stay with the caller.
func (p *Pool) takeBack(m *member) (held time.Duration, reason CloseReason) {
	t := driver.Now()
	p.gate.Lock()
	defer p.gate.Unlock()
	held = p.settleLocked(m, t)
	if reason = p.keepLocked(m, t); reason == "" {
		p.gate.ReleaseLocked()
	}
	return held, reason
}

// park does the same with a connection that nobody has borrowed yet.
func (p *Pool) park(m *member) (reason CloseReason) {
	p.gate.Lock()
	defer p.gate.Unlock()
	if reason = p.keepLocked(m, driver.Now()); reason == "" {
		p.gate.ReleaseLocked()
	}
	return reason
}

func (p *Pool) keepLocked(m *member, t time.Duration) CloseReason {
	switch {
	case p.closed:
		return CloseShutdown
	case m.dies <= t:
		return CloseExpired
	case len(p.idle) >= p.maxIdle() || len(p.idle)+p.holds.current >= int(p.limit.Load()):
		return CloseSurplus
	}
	m.since = t
	p.idle = append(p.idle, m)
	if at := m.expiresAt(); at < p.reapAt {
		p.watchLocked(at, t)
	}
	return ""
}

// trim closes idle connections past the size of the pool. Each takes a permit until it is closed, although there is none
// left for it: so the pool cannot grow again past what is still on the server.
func (p *Pool) trim() {
	p.gate.Lock()
	keep := max(min(p.maxIdle(), int(p.limit.Load())-p.gate.InUseLocked()), 0)
	surplus := max(len(p.idle)-keep, 0)
	closing := slices.Clone(p.idle[:surplus])
	p.idle = slices.Delete(p.idle, 0, surplus)
	for range closing {
		p.gate.SeizeLocked()
	}
	p.gate.Unlock()
	for _, m := range closing {
		go m.discard(CloseSurplus)
	}
}

// minWatch keeps the reaper from running more often than is of use.
const minWatch = time.Second

// watchLocked sets the reaper for at.
func (p *Pool) watchLocked(at, t time.Duration) {
	p.reapAt = at
	wait := max(at-t, minWatch)
	if p.reaper == nil {
		p.reaper = time.AfterFunc(wait, p.reap)
	} else {
		p.reaper.Reset(wait)
	}
}

// reap closes idle connections that have expired. Each has a permit while it is closed, so that nobody who holds one
// finds the cap used up by a connection on its way out; where none is free, they are in use, and a checkout looks.
func (p *Pool) reap() {
	p.gate.Lock()
	defer p.gate.Unlock()
	if p.closed {
		return
	}
	t, next := driver.Now(), never
	p.idle = slices.DeleteFunc(p.idle, func(m *member) bool {
		at := m.expiresAt()
		if at > t || !p.gate.ReserveLocked() {
			next = min(next, at)
			return false
		}
		go m.discard(CloseExpired)
		return true
	})
	if p.reapAt = next; next < never {
		p.watchLocked(next, t)
	}
}
