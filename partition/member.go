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
	// What every call touches comes first, close together.
	pool     *Pool
	phys     *driver.Physical
	loan     loan                         // who has it
	tag      atomic.Pointer[workload.Tag] // of the context that borrowed it last; nil: none
	user     atomic.Pointer[Pool]         // the workload's that has it or had it last
	began    time.Duration                // when its borrower came for it
	visit    *visit                       // that its borrower's wall sees; nil: none, as in Enforce mode
	lent     lending                      // to whom
	expired  bool                         // found so when it was lent
	enforced bool                         // limit, by the server
	share    float32                      // of its pool's ConnMaxLifetime that is its own
	holds    holds
	atOnce   atomic.Uint64 // borrowers that found it idle, and waited for nothing; its borrower alone writes
	config   *PoolConfig   // that its session is set up to
	limit    time.Duration // of a statement; 0: none
	born     time.Duration

	outdated bool // the session is yet to be set up to config
	dialect  stmttimeout.Dialect
	applied  stmttimeout.Applied
	place    int // in its pool's list of those that are out; the gate's lock guards it

	stack         atomic.Pointer[[]uintptr] // that acquired it; nil unless LeakStacks
	reported      time.Duration             // the loan that was reported as a leak; the gate's lock guards it
	untaggedCalls atomic.Uint64             // borrowings without a tag that are over; as atOnce
	strokes       strokes                   // of its holds
}

// lending is what a connection is lent for.
type lending uint8

const (
	toNobody lending = iota // it is idle, or on its way to a borrower
	toTagged
	toUntagged // a borrower for whom nothing said which workload it is
)

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// serverGrace is how much later than the server the guard fires: time for the server's own error to arrive. It also is
// the least that a driver call has which fetches rows.
const serverGrace = 500 * time.Millisecond

// lifetimeJitter is the part of ConnMaxLifetime by which connections differ, so that a pool is not replaced at once.
const lifetimeJitter = 0.1

func newMember(p *Pool, conn sqldriver.Conn, c *PoolConfig, d stmttimeout.Dialect, a stmttimeout.Applied) *member {
	m := &member{pool: p, config: c, dialect: d, applied: a, born: driver.Now(), share: 1 - rand.Float32()*lifetimeJitter}
	m.phys = driver.NewPhysical(conn, m, p.registry.texts)
	m.user.Store(p)
	m.setLimit()
	return m
}

func (m *member) setLimit() {
	m.limit, m.enforced = max(m.config.StatementTimeout, 0), false
	if server := m.applied.StatementTimeout; server > 0 && m.limit > 0 {
		m.limit, m.enforced = min(m.limit, server), true
	}
}

// dies is when its lifetime ends.
func (m *member) dies() time.Duration { return m.diesBy(m.pool.config.Load()) }

func (m *member) diesBy(c *PoolConfig) time.Duration {
	if life := c.ConnMaxLifetime; life > 0 {
		return m.born + time.Duration(float64(m.share)*float64(life))
	}
	return never
}

// expiresAt is when a connection that is idle since then is too old, or has been idle for too long.
func (m *member) expiresAt(since time.Duration) time.Duration {
	c := m.pool.config.Load()
	if idle := c.ConnMaxIdleTime; idle > 0 {
		return min(m.diesBy(c), since+idle)
	}
	return m.diesBy(c)
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
	if m.enforced && t&driver.ServerEnforced != 0 {
		return driver.Limit{Statement: m.limit, Grace: serverGrace}
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
		user := m.user.Load()
		user.counters.statementTimeouts.Add(1)
		m.pool.registry.observers.statementTimedOut(ctx, StatementEvent{user.name, e.Limit, e.Elapsed, byServer})
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

// noteReset logs a panic that reached no caller, if that is why a reset failed.
func (m *member) noteReset(err error) {
	if errors.Is(err, driver.ErrPanicked) {
		m.pool.registry.logger.Error("driver panicked", "pool", m.pool.name, "panic", m.pool.server.redacted(err))
	}
}

// Begun implements driver.Lender.
func (m *member) Begun(ctx context.Context) (enforced bool, err error) {
	if len(m.applied.Transaction) == 0 {
		return false, nil
	}
	return m.applied.Enforcement == stmttimeout.EnforcedByTransaction, m.run(ctx, m.applied.Transaction)
}

// Restore implements driver.Lender.
func (m *member) Restore(ctx context.Context) error {
	if err := m.run(ctx, m.applied.Restore); err != nil || !m.outdated {
		return err
	}
	return m.setUpAgain(ctx)
}

// run runs statements of ours, within a call of the borrower or before it.
func (m *member) run(ctx context.Context, texts []string) error {
	session := m.phys.Session()
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
	user := m.user.Load() // it may be somebody else's a moment later
	held, reason := m.pool.takeBack(m)
	if reason != "" {
		go m.retire(held, reason)
		return
	}
	if o := &m.pool.registry.observers; len(o.release) > 0 {
		o.released(ReleaseEvent{user.name, held})
	}
}

// ended counts a hold. A connection that turned out to be bad before its borrower had it was not held.
func (m *member) ended(held time.Duration) {
	if m.lent == toNobody {
		return
	}
	m.holds.end(held)
	m.strokes.add(bucketOf(held))
	if m.lent == toUntagged {
		m.noteUntagged(held, m.stack.Load())
	}
	m.lent = toNobody
	if m.visit != nil {
		m.leaveWall(held)
	}
}

// leaveWall tells the borrower's wall.
func (m *member) leaveWall(held time.Duration) {
	m.user.Load().wall.end(m.visit, held)
	m.visit = nil
}

// Discarded implements driver.Lender.
func (m *member) Discarded() {
	held := m.pool.settle(m)
	go m.retire(held, CloseBad)
}

// retire closes a connection that was on loan. Its permit goes back when it is really closed, and when nothing of it runs
// on the server any more.
func (m *member) retire(held time.Duration, reason CloseReason) {
	switch e := m.phys.Ending(); {
	case m.pool.registry.mode == Observe:
		m.shut(reason)
	case e == driver.Ended:
		m.shutAndSee(reason)
	default:
		m.end(e, reason)
	}
	m.pool.registry.observers.released(ReleaseEvent{m.user.Load().name, held})
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
	p, user := m.pool, m.user.Load()
	p.forget(m)
	p.open.Add(-1)
	user.counters.closed.Add(1)
	p.registry.observers.connClosed(ConnEvent{Pool: user.name, Took: driver.Now() - began, Err: err, Reason: reason})
	return err
}

// closePhysical survives a driver that panics: it runs on a goroutine where a panic would end the program.
func (m *member) closePhysical() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicError(v)
			m.pool.registry.logger.Error("driver panicked in Close", "pool", m.pool.name, "panic", m.pool.server.redacted(panicError(v)))
		}
	}()
	if _, server := m.dialect.(stmttimeout.Ender); !server {
		m.phys.CloseOpen()
	}
	return m.phys.Close()
}

// Replace implements driver.Lender. The new connection is held from now; what the old one's borrower had waited
// counts against the same acquire timeout.
func (m *member) Replace(ctx context.Context) (*driver.Physical, error) {
	p := m.pool
	waited := m.loan.since() - m.began
	c := call{ctx: ctx, tag: m.tag.Load(), user: m.user.Load(), untagged: m.lent == toUntagged}
	held := p.settle(m)
	a := &acquire{call: c, pool: p, began: driver.Now() - waited, budget: p.budget()}
	fresh, err := a.dial(m)
	if err != nil {
		p.registry.observers.released(ReleaseEvent{c.user.name, held}) // the permit is gone with it
		return nil, a.refuse(err)
	}
	p.borrow(fresh, c, a.began)
	return fresh.phys, nil
}

// hung reports whether a connection did not answer in time.
func hung(err error) bool { return errors.Is(err, driver.ErrHung) }
