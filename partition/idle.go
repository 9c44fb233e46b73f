package partition

import (
	"slices"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
)

// A connection is idle, out, or on its way to be closed. Whoever takes one from the idle list holds a permit first;
// whoever puts one back still does. The clock is read before the gate is locked: to read it takes as long as all that is
// done under the lock.

// take lends the connection that a virtual connection had last, if it is parked since: the usual checkout, without a lock.
func (p *Pool) take(m *member) bool {
	h, since := m.loan.get()
	if h != parked || !p.gate.Calm() {
		return false
	}
	t := driver.Now()
	if !m.loan.change(parked, since, inHouse, t) {
		return false
	}
	p.gate.TakeParked(t)
	m.expired = m.expiresAt(since) <= t
	return true
}

// park ends a borrowing without a lock: the connection stays where it is, for who had it last or who needs one more.
func (p *Pool) park(m *member, t time.Duration) bool {
	if !p.gate.Calm() || p.idleLimit.Load() < p.limit.Load() || m.dies() <= t {
		return false
	}
	p.gate.Park(t)
	m.loan.set(parked, t)
	if p.gate.Calm() || !m.loan.change(parked, t, inHouse, t) {
		return true
	}
	p.gate.Unpark(t)
	return false
}

// reclaimLocked takes back the connection that was parked last, and its permit.
func (p *Pool) reclaimLocked() bool {
	for p.gate.AnyParked() {
		m, last := (*member)(nil), time.Duration(0)
		for _, o := range p.out {
			if h, since := o.loan.get(); h == parked && (m == nil || since > last) {
				m, last = o, since
			}
		}
		if m == nil || p.reclaimOneLocked(m, last) {
			return m != nil
		}
	}
	return false
}

func (p *Pool) reclaimAllLocked() {
	for p.reclaimLocked() {
	}
}

func (p *Pool) reclaimOneLocked(m *member, since time.Duration) bool {
	if !m.loan.change(parked, since, inHouse, since) {
		return false
	}
	p.dropLocked(m)
	p.idle = append(p.idle, m)
	p.gate.ReleaseParkedLocked()
	return true
}

// tryLend takes a permit and an idle connection, or nothing. It looks for the connection first, so that a permit is
// never taken, and somebody else turned away, for nothing.
func (p *Pool) tryLend() *member {
	t := driver.Now()
	p.gate.Lock()
	defer p.gate.Unlock()
	if len(p.idle) == 0 && !p.reclaimLocked() || !p.gate.TryAcquireLocked() {
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
	if len(p.idle) > 0 || p.reclaimLocked() {
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
	m.expired = m.expiresAt(m.loan.since()) <= t
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
	m.loan.set(inHouse, t)
	m.place = len(p.out)
	p.out = append(p.out, m)
	p.watchLocked(min(m.expiresAt(t), p.nextHold(t)), t) // it may be parked and forgotten, or held too long
}

// dropLocked takes m off the list of those that are out.
func (p *Pool) dropLocked(m *member) {
	last := len(p.out) - 1
	p.out[m.place] = p.out[last]
	p.out[m.place].place = m.place
	p.out[last] = nil
	p.out = p.out[:last]
	p.holds = p.holds.add(m.holds.take())
}

// borrow is the last step of an acquire: from now on the connection is its caller's.
func (p *Pool) borrow(m *member, c call, began time.Duration) {
	if m.tag.Load() != c.tag {
		m.tag.Store(c.tag)
	}
	m.began, m.lent = began, toTagged
	if c.untagged {
		m.lent = toUntagged
	}
	if w := c.user.wall; w != nil {
		if m.user.Store(c.user); c.unknown {
			p.registry.unknownTags.Add(1)
		}
		m.visit = w.begin(began, m.loan.since(), c.atOnce)
	} else if c.atOnce {
		p.noteRate(m.loan.since())
		m.atOnce.Store(m.atOnce.Load() + 1)
	}
	if p.config.Load().LeakStacks {
		m.stack.Store(callers())
	} else if m.stack.Load() != nil {
		m.stack.Store(nil) // of a borrower before
	}
	m.loan.set(borrowed, m.loan.since())
}

// unlend undoes a borrowing that has not begun. The permit stays.
func (p *Pool) unlend(m *member) {
	p.gate.Lock()
	defer p.gate.Unlock()
	p.dropLocked(m)
}

// settle ends the borrowing of a connection that will be closed. Its permit stays.
func (p *Pool) settle(m *member) (held time.Duration) {
	t := driver.Now()
	held = t - m.loan.since()
	m.ended(held)
	p.gate.Lock()
	defer p.gate.Unlock()
	m.loan.set(inHouse, t)
	p.dropLocked(m)
	return held
}

// takeBack ends the borrowing of a sound connection: it is parked, or goes back on the list, and its permit to the gate.
// If there is a reason not to keep it, both stay with the caller.
func (p *Pool) takeBack(m *member) (held time.Duration, reason CloseReason) {
	t := driver.Now()
	held = t - m.loan.since()
	m.ended(held)
	if p.park(m, t) {
		return held, ""
	}
	p.gate.Lock()
	defer p.gate.Unlock()
	p.dropLocked(m)
	return held, p.keepLocked(m, t)
}

// land does the same with a connection that nobody has borrowed yet.
func (p *Pool) land(m *member) (reason CloseReason) {
	t := driver.Now()
	p.gate.Lock()
	defer p.gate.Unlock()
	return p.keepLocked(m, t)
}

func (p *Pool) keepLocked(m *member, t time.Duration) CloseReason {
	m.loan.set(inHouse, t)
	switch {
	case p.closed:
		return CloseShutdown
	case m.dies() <= t:
		return CloseExpired
	case len(p.idle) >= int(p.idleLimit.Load()) || len(p.idle)+len(p.out) >= int(p.limit.Load()):
		return CloseSurplus
	}
	p.idle = append(p.idle, m)
	p.watchLocked(m.expiresAt(t), t)
	p.gate.ReleaseLocked()
	return ""
}

// trim closes idle connections past the size of the pool. Each takes a permit until it is closed, although there is none
// left for it: so the pool cannot grow again past what is still on the server.
func (p *Pool) trim() {
	p.gate.Lock()
	p.reclaimAllLocked()
	keep := max(min(int(p.idleLimit.Load()), int(p.limit.Load())-p.gate.OutLocked()), 0)
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
const minWatch = 10 * time.Millisecond

// watchLocked sets the reaper for at, if it is not to come sooner.
func (p *Pool) watchLocked(at, t time.Duration) {
	if at >= p.reapAt {
		return
	}
	p.reapAt = at
	wait := max(at-t, minWatch)
	if p.reaper == nil {
		p.reaper = time.AfterFunc(wait, p.reap)
	} else {
		p.reaper.Reset(wait)
	}
}

// reap closes idle connections that have expired, and looks at what is held too long. Each has a permit while it is closed, so that nobody who holds one
// finds the cap used up by a connection on its way out; where none is free, they are in use, and a checkout looks.
func (p *Pool) reap() {
	p.gate.Lock()
	defer p.gate.Unlock()
	if p.closed {
		return
	}
	t := driver.Now()
	next := p.reclaimExpiredLocked(t)
	p.idle = slices.DeleteFunc(p.idle, func(m *member) bool {
		at := m.expiresAt(m.loan.since())
		if at > t || !p.gate.ReserveLocked() {
			next = min(next, at)
			return false
		}
		go m.discard(CloseExpired)
		return true
	})
	p.reapAt = never
	p.watchLocked(min(next, p.checkHoldsLocked(t)), t)
}

// reclaimExpiredLocked puts parked connections that have expired on the idle list, and returns when the next one of those
// that are out will, at the earliest. (One that is lent past its lifetime is closed when it comes back.)
func (p *Pool) reclaimExpiredLocked(t time.Duration) (next time.Duration) {
	next = never
	for _, m := range slices.Clone(p.out) {
		h, since := m.loan.get()
		if h != parked {
			since = t
		}
		at := m.expiresAt(since)
		if at > t {
			next = min(next, at)
		} else if h == parked {
			p.reclaimOneLocked(m, since)
		}
	}
	return next
}
