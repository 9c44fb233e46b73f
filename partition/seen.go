package partition

import (
	"maps"
	"slices"
	"time"
)

// seen is what the connections of a pool have counted that are closed.
type seen struct {
	holds    histogram
	atOnce   uint64
	untagged uint64
}

// know has the pool ask m what it has counted, until it is closed.
func (p *Pool) know(m *member) {
	p.gate.Lock()
	defer p.gate.Unlock()
	p.members[m] = struct{}{}
}

// forget takes over what m has counted, which is closed.
func (p *Pool) forget(m *member) {
	p.gate.Lock()
	defer p.gate.Unlock()
	delete(p.members, m)
	m.strokes.addTo(&p.gone.holds)
	p.gone.atOnce += m.atOnce.Load()
	p.gone.untagged += m.untaggedCalls.Load()
}

// survey returns what the closed connections have counted, and the others, who are to be asked without the lock: a pool may
// have a thousand of them. What each says never becomes less, nor does the sum, since each is counted once.
func (p *Pool) survey() (gone seen, members []*member, held time.Duration) {
	p.gate.Lock()
	defer p.gate.Unlock()
	return p.gone, slices.AppendSeq(make([]*member, 0, len(p.members)), maps.Keys(p.members)), p.holdsLocked().total
}

// holdsOf are the holds of all connections that the pool has had, and how long they lasted together.
func (p *Pool) holdsOf() (h histogram, total time.Duration) {
	gone, members, total := p.survey()
	h = gone.holds
	for _, m := range members {
		m.strokes.addTo(&h)
	}
	return h, total
}

// servedAtOnce is how many callers of the workload found an idle connection at once.
func (p *Pool) servedAtOnce() uint64 {
	if w := p.wall; w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.atOnce
	}
	gone, members, _ := p.survey()
	n := gone.atOnce
	for _, m := range members {
		n += m.atOnce.Load()
	}
	return n
}
