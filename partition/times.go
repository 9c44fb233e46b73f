package partition

import (
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
)

// Times is how long callers of a pool waited for their connections, and how long they held them: since Open, at most an
// eighth too long. Waits are those of callers that got a connection, queue and dial together.
type Times struct {
	WaitP50, WaitP99 time.Duration
	HoldP50, HoldP99 time.Duration
}

// Times returns what was seen so far. It looks at each connection of the pool, and is for people, not for every request.
func (p *Pool) Times() Times {
	holds, waits := p.heldFor(), p.waitedFor()
	waits[0] += max(holds.count(), waits.count()) - waits.count()
	return Times{waits.quantile(0.5), waits.quantile(0.99), holds.quantile(0.5), holds.quantile(0.99)}
}

func (p *Pool) heldFor() histogram {
	if p.wall != nil {
		return p.wall.evidence(driver.Now()).holds
	}
	return p.holdsOf()
}

// waitedFor has those alone that found no idle connection at once. All others waited for nothing, and are as many as there
// are more holds.
func (p *Pool) waitedFor() (h histogram) {
	p.waits.addTo(&h)
	return h
}
