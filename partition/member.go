package partition

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

var _ driver.Lender = (*member)(nil)

// member is a physical connection as its pool knows it, and stands behind it as the driver package's Lender.
type member struct {
	pool    *Pool
	phys    *driver.Physical
	dialect stmttimeout.Dialect
	applied stmttimeout.Applied
	limit   time.Duration // of a statement; 0: none
	grace   time.Duration // of the guard behind the server's limit

	dies    time.Duration // when its lifetime ends
	loan    loan          // who has it
	holds   holds
	place   int           // in its pool's list of those that are out; the gate's lock guards it
	expired bool          // found so when it was lent
	began   time.Duration // when its borrower came for it

	tag      atomic.Pointer[workload.Tag] // of the context that borrowed it last; nil: none
	stack    atomic.Pointer[[]uintptr]    // that acquired it; nil unless LeakStacks
	reported time.Duration                // the loan that was reported as a leak; the gate's lock guards it
}

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// serverGrace is how much later than the server the guard fires: time for the server's own error to arrive. It also is
// the least that a driver call has which fetches rows.
const serverGrace = 500 * time.Millisecond

// lifetimeJitter is the part of ConnMaxLifetime by which connections differ, so that a pool is not replaced at once.
const lifetimeJitter = 0.1

func newMember(p *Pool, conn sqldriver.Conn, d stmttimeout.Dialect, a stmttimeout.Applied) *member {
	m := &member{pool: p, dialect: d, applied: a, dies: never}
	m.phys = driver.NewPhysical(conn, m, p.registry.texts)
	m.limit = max(p.config.StatementTimeout, 0)
	if server := a.StatementTimeout; server > 0 && m.limit > 0 {
		m.limit, m.grace = min(m.limit, server), serverGrace
	}
	if life := p.config.ConnMaxLifetime; life > 0 {
		m.dies = driver.Now() + life - time.Duration(rand.Float64()*lifetimeJitter*float64(life))
	}
	return m
}

// expiresAt is when a connection that is idle since then is too old, or has been idle for too long.
func (m *member) expiresAt(since time.Duration) time.Duration {
	if idle := m.pool.config.ConnMaxIdleTime; idle > 0 {
		return min(m.dies, since+idle)
	}
	return m.dies
}

// Inspect implements driver.Lender.
func (m *member) Inspect(query string) (t driver.Traits) {
	traits := m.dialect.Inspect(query)
	if traits.Has(stmttimeout.TouchesSettings) && len(m.applied.Restore) > 0 {
		t |= driver.TouchesSettings
	}
	if traits.Has(stmttimeout.ServerEnforced) && m.applied.Enforcement != stmttimeout.EnforcedByTransaction {
		t |= driver.ServerEnforced
	}
	return t
}

// Limit implements driver.Lender: the pool's limit, or a tighter one that the context carries, which is the guard's
// alone to enforce.
func (m *member) Limit(ctx context.Context, t driver.Traits) driver.Limit {
	if d, ok := stmttimeout.From(ctx); ok && (m.limit == 0 || d < m.limit) {
		return driver.Limit{Statement: min(d, forever)}
	}
	if t&driver.ServerEnforced != 0 {
		return driver.Limit{Statement: m.limit, Grace: m.grace}
	}
	return driver.Limit{Statement: m.limit}
}

// Failed implements driver.Lender. Only a statement timeout is wrapped; every other error is the driver's own.
func (m *member) Failed(ctx context.Context, f driver.Failure) (err error, ended bool) {
	cut := f.Guarded || ctx.Err() != nil
	ended = !cut || f.Err == nil || m.dialect == stmttimeout.SQLite() || stmttimeout.Answered(f.Err)
	return m.explain(ctx, f), ended
}

func (m *member) explain(ctx context.Context, f driver.Failure) error {
	byServer := m.serverTimedOut(ctx, f)
	switch {
	case !f.Guarded && !byServer:
		return f.Err
	case f.Guarded && ctx.Err() != nil && (f.Limit.Statement == 0 || f.Elapsed < f.Limit.Statement):
		if errors.Is(f.Err, ctx.Err()) {
			return f.Err
		}
		return errors.Join(ctx.Err(), f.Err) // the driver had not noticed that its caller's time was up
	}
	e := &stmttimeout.Error{Limit: f.Limit.Statement, Elapsed: f.Elapsed, ByServer: byServer, Err: f.Err}
	if byServer && m.applied.StatementTimeout > 0 {
		e.Limit = m.applied.StatementTimeout
	}
	if f.Err != nil {
		m.pool.counters.statementTimeouts.Add(1)
		m.pool.registry.observers.statementTimedOut(ctx, StatementEvent{m.pool.name, e.Limit, e.Elapsed, byServer})
	}
	return e
}

// serverTimedOut reports whether the server ended the statement at its limit. Where its answer leaves open whether
// somebody cancelled it, the time decides: before its limit it was not the limit.
func (m *member) serverTimedOut(ctx context.Context, f driver.Failure) bool {
	if f.Err == nil {
		return false
	}
	switch m.dialect.Verdict(f.Err) {
	case stmttimeout.Exceeded:
		return true
	case stmttimeout.ExceededOrCanceled:
		limit := m.applied.StatementTimeout
		return limit > 0 && f.Elapsed >= limit && ctx.Err() == nil && !f.Guarded
	}
	return false
}

// Begun implements driver.Lender.
func (m *member) Begun(ctx context.Context) (enforced bool, err error) {
	if len(m.applied.Transaction) == 0 {
		return false, nil
	}
	return m.applied.Enforcement == stmttimeout.EnforcedByTransaction, m.run(ctx, m.applied.Transaction)
}

// Restore implements driver.Lender.
func (m *member) Restore(ctx context.Context) error { return m.run(ctx, m.applied.Restore) }

// run runs statements of ours, within a call of the borrower or before it.
func (m *member) run(ctx context.Context, texts []string) error {
	session := driver.NewSession(m.phys.Raw())
	for _, text := range texts {
		if err := session.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// Returning implements driver.Lender.
func (m *member) Returning() bool {
	h, since := m.loan.get()
	return h == borrowed && m.loan.change(borrowed, since, inHouse, since)
}

// Returned implements driver.Lender.
func (m *member) Returned(bad bool) {
	if bad {
		m.Discarded()
		return
	}
	held, reason := m.pool.takeBack(m)
	if reason != "" {
		go m.retire(held, reason)
		return
	}
	if o := &m.pool.registry.observers; len(o.release) > 0 {
		o.released(ReleaseEvent{m.pool.name, held})
	}
}

// Discarded implements driver.Lender.
func (m *member) Discarded() {
	held := m.pool.settle(m)
	go m.retire(held, CloseBad)
}

// retire closes a connection that was on loan. Its permit goes back when it is really closed, and when nothing of it runs
// on the server any more.
func (m *member) retire(held time.Duration, reason CloseReason) {
	if e := m.phys.Ending(); e == driver.Ended {
		m.shutAndSee(reason)
	} else {
		m.end(e, reason)
	}
	m.pool.registry.observers.released(ReleaseEvent{m.pool.name, held})
	m.pool.gate.Release()
}

// discard closes a connection that nobody has borrowed, and gives up the permit behind it.
func (m *member) discard(reason CloseReason) {
	m.shutAndSee(reason)
	m.pool.gate.Release()
}

// shut closes the connection, for as long as that takes.
func (m *member) shut(reason CloseReason) error {
	began := driver.Now()
	err := m.closePhysical()
	p := m.pool
	p.open.Add(-1)
	p.counters.closed.Add(1)
	p.registry.observers.connClosed(ConnEvent{Pool: p.name, Took: driver.Now() - began, Err: err, Reason: reason})
	return err
}

// closePhysical survives a driver that panics: it runs on a goroutine where a panic would end the program.
func (m *member) closePhysical() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicError(v)
			m.pool.registry.logger.Error("driver panicked in Close", "pool", m.pool.name, "panic", v)
		}
	}()
	return m.phys.Close()
}

// Replace implements driver.Lender. The new connection is held from now; what the old one's borrower had waited
// counts against the same acquire timeout.
func (m *member) Replace(ctx context.Context) (*driver.Physical, error) {
	p := m.pool
	waited := m.loan.since() - m.began
	held := p.settle(m)
	a := &acquire{pool: p, ctx: ctx, tag: m.tag.Load(), began: driver.Now() - waited, budget: p.budget()}
	fresh, err := a.dial(m)
	if err != nil {
		p.registry.observers.released(ReleaseEvent{p.name, held}) // the permit is gone with it
		return nil, a.refuse(err)
	}
	fresh.began = a.began
	p.borrow(fresh, a.tag)
	return fresh.phys, nil
}

// hung reports whether a connection did not answer in time.
func hung(err error) bool { return errors.Is(err, driver.ErrHung) }
