package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
)

// drainPoll is how often Drain looks whether the last holder is gone.
const drainPoll = 5 * time.Millisecond

// drainGrace is how long it then waits for statements to end on the server.
const drainGrace = 2 * time.Second

// Drain closes the registry with care: it turns new acquires away, with database/sql's own error of a closed handle, waits
// until those who hold a connection have given it back, at most until ctx ends, and then takes back what is still held, as
// MaxHold does: statements are ended on the server, and their holders get ErrReclaimed. In the end it closes the *sql.DB.
// After it nothing of the registry is left on a server that answers.
//
// The error says how many had to be interrupted, and Is that of ctx; or it is Close's.
func (r *Registry) Drain(ctx context.Context) error {
	for _, p := range r.carriers {
		p.gate.Close()
	}
	err := ctx.Err()
	for err == nil && r.inUse() > 0 {
		if !sleep(ctx, drainPoll) {
			err = ctx.Err()
		}
	}
	if err == nil {
		return r.Close()
	}
	interrupted := r.interrupt()
	grace, cancel := context.WithTimeout(context.Background(), drainGrace)
	defer cancel()
	for r.inUse() > 0 && sleep(grace, drainPoll) {
		interrupted += r.interrupt() // of who still dialed
	}
	if interrupted == 0 {
		return r.Close()
	}
	return errors.Join(fmt.Errorf("partition: drained with %d connections still held: %w", interrupted, err), r.Close())
}

func (r *Registry) inUse() (n int) {
	for _, p := range r.carriers {
		n += p.gate.Stats().InUse
	}
	return n
}

// interrupt takes back every connection that is held.
func (r *Registry) interrupt() (n int) {
	for _, p := range r.carriers {
		n += p.interrupt(fmt.Errorf("%w: pool %q: the registry was drained", ErrReclaimed, string(p.name)))
	}
	return n
}

func (p *Pool) interrupt(reason error) (n int) {
	p.gate.Lock()
	defer p.gate.Unlock()
	t := driver.Now()
	for i := len(p.out) - 1; i >= 0; i-- {
		m := p.out[i]
		if h, since := m.loan.get(); h == borrowed {
			p.reclaimHeldLocked(m, since, t, reason)
			n++
		}
	}
	return n
}
