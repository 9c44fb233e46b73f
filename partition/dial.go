package partition

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
)

// dialing is a connection on its way. It outlives the caller that asked for it: if every dial were cancelled with an
// impatient caller, a server that takes longer to accept than the acquire timeout would never be connected to at all.
// So the caller leaves on time, and the dial goes on, keeps its permit, and lands idle for the next one.
type dialing struct {
	pool   *Pool
	user   *Pool   // the workload's that it is for
	dead   *member // to be closed first, or nil
	revive *member // idle, to be reset: only if that fails is there a dial; or nil
	state  atomic.Int32
	done   chan struct{} // closed once the rest is set
	m      *member
	err    error
	panic  any
}

const (
	dialPending int32 = iota
	dialDelivered
	dialAbandoned
)

// dial makes a connection under the permit that the caller holds. With an error the permit is no longer the caller's.
// dead is a connection to be closed first, or nil.
func (a *acquire) dial(dead *member) (*member, error) {
	return a.connect(&dialing{dead: dead})
}

func (a *acquire) connect(d *dialing) (*member, error) {
	d.pool, d.user, d.done = a.pool, a.user, make(chan struct{})
	go d.run(context.WithoutCancel(a.ctx))
	timer := time.NewTimer(a.left(a.budget.total))
	defer timer.Stop()
	var reason error
	select {
	case <-d.done:
		return d.result()
	case <-timer.C:
		reason = errDialTimeout
	case <-a.ctx.Done():
		reason = a.ctx.Err()
	}
	if d.state.CompareAndSwap(dialPending, dialAbandoned) {
		return nil, reason
	}
	// It ended in the same instant: what is there is taken.
	<-d.done
	return d.result()
}

func (d *dialing) result() (*member, error) {
	if d.panic != nil {
		panic(d.panic)
	}
	if d.err != nil {
		return nil, d.err
	}
	d.pool.hold(d.m)
	return d.m, nil
}

func (d *dialing) run(ctx context.Context) {
	if d.revive != nil {
		d.reset(ctx)
	}
	if d.dead != nil {
		d.dead.shut(CloseBad)
	}
	if d.m == nil && d.panic == nil {
		d.connect(ctx)
	}
	if d.m == nil {
		d.pool.gate.Release()
	}
	if d.state.CompareAndSwap(dialPending, dialDelivered) {
		close(d.done)
		return
	}
	d.land()
}

const (
	// minReset is what a caller must have left to reset a connection itself. With less, a sound connection would be thrown
	// away because its caller came to the end of its time.
	minReset = 10 * time.Millisecond
	// resetGrace is how long such a reset may take then, as long as a driver has after its caller's deadline.
	resetGrace = time.Second
)

// reset resets an idle connection, which is closed if that fails.
func (d *dialing) reset(ctx context.Context) {
	defer func() {
		d.panic = recover()
		if d.m == nil {
			d.dead = d.revive
		}
	}()
	err := d.revive.phys.Reset(ctx, driver.Now()+resetGrace)
	if err == nil {
		d.m = d.revive
	}
	d.revive.noteReset(err)
}

// land is the end of a dial whose caller has left.
func (d *dialing) land() {
	if d.m == nil {
		return
	}
	if reason := d.pool.land(d.m); reason != "" {
		d.m.discard(reason)
	}
}

// connect dials and sets up, within DialTimeout, and tells what came of it.
func (d *dialing) connect(ctx context.Context) {
	p := d.pool
	ctx, cancel := context.WithTimeout(ctx, p.config.Load().DialTimeout)
	defer cancel()
	defer context.AfterFunc(p.registry.life, cancel)()
	began := driver.Now()
	defer func() {
		d.panic = recover()
		d.user.dialed(driver.Now()-began, errors.Join(d.err, panicError(d.panic)))
	}()
	d.m, d.err = p.connect(ctx)
	if d.err != nil && errors.Is(d.err, context.DeadlineExceeded) && ctx.Err() == context.DeadlineExceeded {
		d.err = errDialTimeout // the deadline was ours, not the caller's
	}
}

func panicError(v any) error {
	if v == nil {
		return nil
	}
	return fmt.Errorf("partition: driver panicked: %v", v)
}

func (p *Pool) dialed(took time.Duration, err error) {
	if err == nil {
		p.counters.opened.Add(1)
	} else {
		p.counters.openFailures.Add(1)
		p.journal.openFailed(err)
	}
	p.registry.observers.connOpened(ConnEvent{Pool: p.name, Took: took, Err: err})
}

// connect makes one physical connection and sets its session up. A connection whose set-up failed is closed.
func (p *Pool) connect(ctx context.Context) (*member, error) {
	conn, err := p.server.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	ready := false
	defer func() {
		if !ready {
			conn.Close()
		}
	}()
	session := driver.NewSession(conn)
	dialect, err := p.server.dialectOf(ctx, session, p.registry.logger)
	if err != nil {
		return nil, err
	}
	c := p.config.Load()
	applied, err := p.setUp(ctx, dialect, session, p.settings(c))
	if err != nil {
		return nil, err
	}
	p.warn(applied.Warnings)
	if p.registry.mode == Enforce {
		p.noteEnforcement(applied)
	}
	ready = true
	p.open.Add(1)
	m := newMember(p, conn, c, dialect, applied)
	p.know(m)
	return m, nil
}

// settings is what the sessions of this pool are set up to under c.
func (p *Pool) settings(c *PoolConfig) stmttimeout.Settings {
	return stmttimeout.Settings{
		StatementTimeout:         max(c.StatementTimeout, 0),
		IdleInTransactionTimeout: c.IdleInTransactionTimeout,
		LockTimeout:              c.LockTimeout,
		ReadOnly:                 c.ReadOnly,
		Workload:                 p.sessionName(),
		ApplicationName:          p.registry.name,
	}
}

// sessionName is what a session is to show of its workload.
func (p *Pool) sessionName() string {
	if p.registry.mode == Observe {
		return ""
	}
	return string(p.name)
}

// noteEnforcement keeps what enforces the statement timeout for the statistics, and logs it where it is news.
func (p *Pool) noteEnforcement(a stmttimeout.Applied) {
	if last := p.enforcement.Swap(&a.Enforcement); last == nil || *last != a.Enforcement {
		p.registry.logger.Info("statement timeout", "pool", p.name, "enforcement", a.Enforcement, "server_limit", a.StatementTimeout)
	}
}

// warn logs, once, what was asked for and the server does not have.
func (p *Pool) warn(warnings []string) {
	if len(warnings) == 0 {
		return
	}
	p.warned.Do(func() {
		for _, w := range warnings {
			p.registry.logger.Warn(w, "pool", p.name)
		}
	})
}
