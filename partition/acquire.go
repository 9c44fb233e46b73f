package partition

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/internal/gate"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// errDialTimeout is an acquire that had its permit and then waited too long for the server.
var errDialTimeout = errors.New("partition: dial outlasted its caller")

// budget is how long an acquire may take: in the queue, and together with a dial.
type budget struct{ queue, total time.Duration }

func (p *Pool) budget() budget {
	c := p.config.Load()
	if at := c.AcquireTimeout; at > 0 {
		return budget{at, at}
	}
	return budget{0, c.DialTimeout} // NoWait
}

// unbounded is the budget of an acquire that only its context bounds.
var unbounded = budget{never, never}

// runAtOnce is run without waiting: it lends an idle connection, if there is one, and last if it can be had, so that who comes
// again finds what was there. The error is final.
func (a *acquire) runAtOnce(last *member) (*driver.Physical, error) {
	m := last
	if m == nil || !a.pool.take(m) {
		if m = a.pool.tryLend(); m == nil {
			return nil, nil
		}
	}
	a.atOnce, a.began, a.budget = true, m.loan.since(), a.pool.budget()
	if m.expired || !m.adopt() {
		a.giveUp(m, CloseExpired)
		return nil, nil
	}
	err := a.reset(m, a.began+a.budget.total)
	if err == nil {
		a.done(m)
		return m.phys, nil
	}
	if hung(err) {
		// database/sql would try the next connection, and that one may hang as long.
		a.pool.arrived.Add(1)
		a.giveUp(m, CloseBad)
		return nil, a.refuse(errDialTimeout)
	}
	if a.late() {
		// Nor is there time for another that is bad as slowly.
		a.pool.arrived.Add(1)
		a.atOnce = false
		a.pool.settle(m)
		if m, err = a.dial(m); err != nil {
			return nil, a.refuse(err)
		}
		a.done(m)
		return m.phys, nil
	}
	a.giveUp(m, CloseBad)
	return nil, nil
}

// call is who wants a connection.
type call struct {
	ctx      context.Context
	tag      *workload.Tag // of ctx; nil: none
	user     *Pool         // the workload's
	untagged bool          // nothing said which workload's
	unknown  bool          // what was said is no pool's name
	atOnce   bool          // an idle connection was there
}

// direct is a call that needs no tag.
func (p *Pool) direct(ctx context.Context) call {
	return call{ctx: ctx, tag: workload.TagOf(ctx), user: p}
}

// acquire is one caller on its way to a connection.
type acquire struct {
	call
	pool   *Pool // whose connection it will be: the user's carrier
	crowd  bool  // others waited with the same tag
	began  time.Duration
	budget budget
}

// run waits for a permit and returns a connection: an idle one that answers, or a new one.
func (a *acquire) run() (m *member, fresh bool, err error) {
	for {
		if err := a.wait(); err != nil {
			return nil, false, a.refuse(err)
		}
		var again bool
		if m, again = a.pool.lend(); again {
			continue
		}
		if m == nil || !m.expired && m.adopt() {
			break
		}
		a.giveUp(m, CloseExpired) // and the permit with it
	}
	if m != nil && a.left(a.budget.total) < minReset {
		return a.reviveOrDial(m)
	}
	if m != nil {
		if err = a.reset(m, a.deadline()); err == nil {
			a.done(m)
			return m, false, nil
		}
		if hung(err) {
			a.giveUp(m, CloseBad)
			return nil, false, a.refuse(errDialTimeout)
		}
		a.pool.settle(m)
	}
	if m, err = a.dial(m); err != nil {
		return nil, false, a.refuse(err)
	}
	a.done(m)
	return m, true, nil
}

// reset makes an idle connection ready. If the driver panics, that goes on to the caller, without the connection.
func (a *acquire) reset(m *member, deadline time.Duration) error {
	done := false
	defer func() {
		if !done {
			a.giveUp(m, CloseBad)
		}
	}()
	err := m.phys.Reset(a.ctx, deadline)
	done = true
	if err != nil {
		m.noteReset(err)
	}
	return err
}

// reviveOrDial is the end of run for a caller whose time is all but over.
func (a *acquire) reviveOrDial(idle *member) (m *member, fresh bool, err error) {
	a.pool.unlend(idle)
	if m, err = a.connect(&dialing{revive: idle}); err != nil {
		return nil, false, a.refuse(err)
	}
	a.done(m)
	return m, m != idle, nil
}

// wait takes a permit.
func (a *acquire) wait() error {
	queued, err := a.pool.gate.Enter(a.budget.queue > 0)
	if queued == nil {
		return err
	}
	if w := a.user.wall; w != nil {
		defer w.queued()()
	} else {
		a.pool.journal.wake()
	}
	waits := &a.pool.registry.waits
	waits.begin(a.tag)
	err = a.pool.gate.Wait(a.ctx, queued, a.left(a.budget.queue))
	a.crowd = waits.end(a.tag) || a.crowd
	return err
}

// left is what remains of a limit; the time in the queue and that for a dial are one.
func (a *acquire) left(limit time.Duration) time.Duration {
	if limit == never {
		return never
	}
	return limit - (driver.Now() - a.began)
}

// late reports whether so much time has gone that a retry by database/sql, which begins anew, could take the caller past
// its acquire timeout. Such a retry follows where a connection turns out to be bad; there are at most two.
func (a *acquire) late() bool {
	return a.left(a.budget.total) < a.budget.total*9/10
}

// deadline is when the caller must have its connection.
func (a *acquire) deadline() time.Duration {
	if a.budget.total == never {
		return never
	}
	return a.began + a.budget.total
}

// giveUp throws away a connection that was just lent.
func (a *acquire) giveUp(m *member, reason CloseReason) {
	a.pool.settle(m)
	go m.discard(reason)
}

// done counts the wait, and tells that m is the caller's.
func (a *acquire) done(m *member) {
	a.pool.borrow(m, a.call, a.began)
	observed := len(a.pool.registry.observers.acquire) > 0
	if a.atOnce && !observed {
		return
	}
	waited := driver.Now() - a.began
	if !a.atOnce {
		a.user.waits.add(waited)
	}
	if observed {
		a.tell(m, waited)
	}
}

// tell gives the connection back if an observer panics: its caller will not.
func (a *acquire) tell(m *member, waited time.Duration) {
	told := false
	defer func() {
		if !told {
			m.phys.Release(false)
		}
	}()
	a.pool.registry.observers.acquireDone(a.ctx, AcquireEvent{Pool: a.user.name, Waited: waited})
	told = true
}

// refuse turns the reason for which there is no connection into the caller's error, and counts it. The error of a dial
// that failed is the driver's, as it came.
func (a *acquire) refuse(cause error) error {
	waited := driver.Now() - a.began
	err := a.explain(cause, waited)
	a.user.counters.refused(err)
	if w := a.user.wall; w != nil {
		w.left()
	}
	a.user.journal.refused(err)
	a.pool.registry.observers.acquireDone(a.ctx, AcquireEvent{a.user.name, waited, err})
	return err
}

func (a *acquire) explain(cause error, waited time.Duration) error {
	e := &AcquireError{Workload: a.user.name, Waited: waited}
	switch {
	case cause == gate.ErrClosed, a.pool.registry.life.Err() != nil:
		return errClosed()
	case cause == gate.ErrFull:
		e.Reason = ReasonQueueFull
	case cause == gate.ErrTimeout:
		e.Reason = ReasonAcquireTimeout
	case cause == errDialTimeout:
		e.Reason, e.Dialing = ReasonAcquireTimeout, true
	case cause == gate.ErrPaused:
		e.Reason = ReasonPaused
	case a.ctx.Err() != nil && errors.Is(cause, a.ctx.Err()):
		e.Reason, e.ctxErr = ReasonCallerGaveUp, a.ctx.Err()
	case errors.Is(cause, sqldriver.ErrBadConn) && a.late():
		return fmt.Errorf("partition: pool %q: dial: %v", string(a.user.name), cause) // not one to be retried
	default:
		return cause
	}
	a.pool.describe(e, a.began+waited)
	e.Nested = e.LimitedBy == LimitedByPermits && !a.crowd && a.pool.registry.nested(a.tag, a.began)
	return e
}

// describe fills in how the pool is.
func (p *Pool) describe(e *AcquireError, now time.Duration) {
	p.gate.Lock()
	defer p.gate.Unlock()
	s, hold := p.gate.StatsLocked(), p.expectedHoldLocked(now)
	if e.Reason.ofTheWall() && p.usualLocked(hold) {
		p.counters.usual.Add(1)
	}
	e.MaxOpenConns, e.InUse, e.Waiting, e.MaxWaiting = s.Limit, s.InUse, s.Waiting, s.MaxWaiting
	e.Holders = p.holdersLocked(now, maxBlamed)
	e.LimitedBy = p.limitedBy(e, s)
	e.retryAfter = hold * time.Duration(s.Waiting+1) / time.Duration(max(s.Limit, 1))
}
