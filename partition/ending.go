package partition

import (
	"context"
	"errors"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
)

// A client that gives a statement up has not ended it: go-sql-driver/mysql closes its socket, and the server goes on for
// minutes; pgx asks the server to cancel, in the background, and does not wait for that. So the permit behind the connection
// is kept until the statement's session is gone from the server. The caller does not wait for it.

const (
	// endForce is how long a statement has to end after it was asked to; then its session is ended with it.
	endForce = 500 * time.Millisecond
	// endAsk is how long one question to the server may take.
	endAsk = time.Second
	// endGiveUp is after how long the permit is given back although nothing is known.
	endGiveUp = 10 * time.Second
	// seeGiveUp is the same for a connection on which nothing ran.
	seeGiveUp = time.Second
	// closeGiveUp is how long a driver may take to close a connection on which a statement was cut short.
	closeGiveUp = 30 * time.Second
)

// EndOutcome is what is known of a statement's end on the server. Its text is stable.
type EndOutcome string

// The outcomes.
const (
	EndConfirmed EndOutcome = "confirmed" // the server says that its session is gone
	EndForced    EndOutcome = "forced"    // so it does, after its session had to be killed or its socket closed
	EndUnknown   EndOutcome = "unknown"   // the server could not be asked, or did not end it in time
)

// end closes a connection whose statement was cut short, and sees to the statement's end on the server.
func (m *member) end(e driver.Ending, reason CloseReason) {
	p, began := m.user.Load(), driver.Now()
	p.counters.ending.Add(1)
	defer p.counters.ending.Add(-1)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		m.shut(reason)
	}()
	outcome := m.endOnServer(endGiveUp, m.noteEnd)
	if outcome == EndConfirmed && e == driver.BrokenOff {
		outcome = EndForced
	}
	timer := time.NewTimer(closeGiveUp)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
		outcome = EndUnknown
	}
	p.counters.ended(outcome)
	took := driver.Now() - began
	p.journal.ended(outcome, took)
	p.registry.observers.statementEnded(EndEvent{p.name, outcome, took})
}

// shutAndSee closes a connection on which no statement runs. A server takes a moment to notice: where a storm of bad
// connections would fill that moment with new ones, its permit waits for that.
func (m *member) shutAndSee(reason CloseReason) {
	m.shut(reason)
	if reason == CloseBad && m.pool.registry.life.Err() == nil {
		m.endOnServer(seeGiveUp, nil)
	}
}

// endOnServer asks the server until the session is gone: politely at first, then by force.
func (m *member) endOnServer(giveUp time.Duration, note func(error)) EndOutcome {
	ender, ok := m.dialect.(stmttimeout.Ender)
	if !ok || m.applied.Session == "" {
		return EndUnknown
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	began, force := driver.Now(), false
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		gone, err := m.ask(ctx, ender, force)
		if note != nil {
			note(err)
		}
		switch {
		case errors.Is(err, context.DeadlineExceeded): // a server that is slow, or paused; or a lane whose network hangs
		case err != nil:
			return EndUnknown
		case gone && force:
			return EndForced
		case gone:
			return EndConfirmed
		}
		if !sleep(ctx, pause) {
			return EndUnknown
		}
		force = force || driver.Now()-began >= endForce
	}
}

func (m *member) ask(ctx context.Context, ender stmttimeout.Ender, force bool) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, endAsk)
	defer cancel()
	return m.pool.server.control.end(ctx, m.pool.server, ender, m.applied.Session, force)
}

// noteEnd keeps in mind why a statement could not be ended. That the registry is closed is no problem.
func (m *member) noteEnd(err error) {
	if m.pool.registry.life.Err() == nil {
		m.pool.server.control.note(m.pool.server.redacted(err), m.pool.registry.logger)
	}
}

// sleep is false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ended counts an outcome.
func (c *counters) ended(o EndOutcome) {
	switch o {
	case EndConfirmed:
		c.confirmed.Add(1)
	case EndForced:
		c.forced.Add(1)
	case EndUnknown:
		c.unknown.Add(1)
	}
}
