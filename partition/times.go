package partition

import "time"

// Times is how long callers of a pool waited for their connections, and how long they held them: since Open, at most an
// eighth too long. Waits are those of callers that got a connection, queue and dial together.
type Times struct {
	WaitP50, WaitP99 time.Duration
	HoldP50, HoldP99 time.Duration
}

// Times returns what was seen so far. It looks at each connection of the pool, and is for people, not for every request.
func (p *Pool) Times() Times {
	holds, waits := p.Holds(), p.Waits()
	return Times{waits.Quantile(0.5), waits.Quantile(0.99), holds.Quantile(0.5), holds.Quantile(0.99)}
}

// Waits returns how long callers waited that got a connection, queue and dial together. Who finds an idle connection at once
// has waited for nothing.
func (p *Pool) Waits() Histogram {
	var h histogram
	p.waits.counts.addTo(&h)
	h[0] += p.servedAtOnce()
	return newHistogram(h, time.Duration(p.waits.sum.Load()))
}

// Holds returns how long callers held connections, of borrowings that have ended.
func (p *Pool) Holds() Histogram {
	if w := p.wall; w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		return newHistogram(w.holds, w.tally.total)
	}
	counts, total := p.holdsOf()
	return newHistogram(counts, total)
}
