package partition

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
)

// nextHold is when a borrowing that begins at t will be looked at: at LeakAfter or MaxHold.
func (p *Pool) nextHold(t time.Duration) time.Duration {
	next, c := never, p.config.Load()
	for _, d := range []time.Duration{c.LeakAfter, c.MaxHold} {
		if d > 0 {
			next = min(next, t+d)
		}
	}
	return next
}

// checkHoldsLocked reports what is held for longer than LeakAfter, takes back what is held for longer than MaxHold, and
// returns when to look again. A borrowing that begins after this look is due after the next.
func (p *Pool) checkHoldsLocked(t time.Duration) time.Duration {
	next := p.nextHold(t)
	if next == never || len(p.out) == 0 {
		return never
	}
	for _, m := range slices.Clone(p.out) {
		h, since := m.loan.get()
		tag := m.tag.Load()
		if h != borrowed || tag != nil && tag.LongHeld {
			continue
		}
		next = min(next, p.checkHoldLocked(m, since, t))
	}
	return next
}

func (p *Pool) checkHoldLocked(m *member, since, t time.Duration) (next time.Duration) {
	next = never
	c := p.config.Load()
	if limit := c.MaxHold; limit > 0 {
		if next = since + limit; next <= t {
			p.reclaimHeldLocked(m, since, t, fmt.Errorf("%w: pool %q: held for %v, MaxHold is %v", ErrReclaimed, string(p.name), (t-since).Round(time.Millisecond), limit))
			return never
		}
	}
	user := m.user.Load()
	if limit := user.config.Load().LeakAfter; limit > 0 && m.reported != since {
		if since+limit > t {
			return min(next, since+limit)
		}
		m.reported = since
		user.counters.leaked.Add(1)
		go user.tellLeak(m.holder(t - since))
	}
	return next
}

func (p *Pool) tellLeak(h Holder) {
	p.journal.held(leaks, "a connection is held for long", h)
	p.registry.observers.leaked(LeakEvent{p.name, h})
}

// reclaimHeldLocked takes a connection back from its borrower, if it is still that one's.
func (p *Pool) reclaimHeldLocked(m *member, since, t time.Duration, reason error) {
	h := m.holder(t - since)
	if !m.loan.change(borrowed, since, inHouse, since) {
		return
	}
	m.holds.end(t - since)
	m.strokes.add(bucketOf(t - since))
	p.dropLocked(m)
	m.user.Load().counters.reclaimed.Add(1)
	go m.reclaim(h, reason)
}

// reclaim ends what the late holder is doing, and the connection with it.
func (m *member) reclaim(h Holder, reason error) {
	r := m.pool.registry
	if m.visit != nil {
		m.leaveWall(h.Age)
	}
	if m.lent == toUntagged {
		m.noteUntagged(h.Age, cmp.Or(m.stack.Load(), &noStack))
	}
	m.pool.journal.held(reclaims, "a connection is taken back from its holder", h)
	if e := m.phys.Revoke(reason); e == driver.Ended {
		m.shut(CloseReclaimed)
	} else {
		m.end(e, CloseReclaimed)
	}
	r.observers.reclaimed(LeakEvent{h.Pool, h})
	r.observers.released(ReleaseEvent{h.Pool, h.Age})
	m.pool.gate.Release()
}
