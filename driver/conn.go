package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
)

var (
	_ sqldriver.Conn               = (*Conn)(nil)
	_ sqldriver.ConnBeginTx        = (*Conn)(nil)
	_ sqldriver.ConnPrepareContext = (*Conn)(nil)
	_ sqldriver.ExecerContext      = (*Conn)(nil)
	_ sqldriver.NamedValueChecker  = (*Conn)(nil)
	_ sqldriver.Pinger             = (*Conn)(nil)
	_ sqldriver.QueryerContext     = (*Conn)(nil)
	_ sqldriver.SessionResetter    = (*Conn)(nil)
	_ sqldriver.Validator          = (*Conn)(nil)
)

// Conn is the virtual connection: bound to a Physical from checkout to return, and otherwise to nothing. While it is
// unbound every call answers driver.ErrBadConn, with which database/sql goes on to another one.
//
// database/sql never uses a connection from two goroutines at once, so a Conn needs no lock.
type Conn struct {
	connector *Connector
	last      Lender // of the connection it had last; a virtual connection belongs to the pool of its first binding for life
	phys      *Physical
	// refusal is the final answer of a checkout that bound nothing: what every call of this checkout returns.
	// ResetSession has no other way to give its caller an error than through the call that follows.
	refusal error
	// lastResort: Connect bound a connection that had been idle. database/sql has no attempt left after it, so if the
	// first call finds the connection dead we replace it ourselves.
	lastResort bool
	// skipped: the last call was answered ErrSkip. What database/sql prepares next is for one use.
	skipped bool
	// bad: ErrBadConn was answered, so that database/sql is about to close the connection. It closes statements first,
	// under its own lock.
	bad     bool
	dropped bool   // database/sql was told to throw it away: its Close is no surprise
	returns uint32 // how often it was returned
	spare   spareRows
}

// ResetSession binds a cached connection for a checkout, if that is possible at once. Otherwise database/sql drops
// it, which costs nothing, and ends in Connect.
func (c *Conn) ResetSession(ctx context.Context) error {
	var p *Physical
	var err error
	if _, ok := ctx.(nudge); !ok {
		p, err = c.connector.router.Try(ctx, c.last)
	}
	switch {
	case err != nil:
		c.refusal = err
	case p == nil:
		c.dropped = true
		return sqldriver.ErrBadConn
	default:
		c.phys, c.last = p, p.lender
		c.connector.watch()
	}
	return nil
}

// IsValid ends a checkout.
func (c *Conn) IsValid() bool {
	if c.phys == nil {
		c.dropped = true
		return false
	}
	if !c.unbind() {
		c.dropped = true
		return false
	}
	c.returns++
	if c.returns%capCheckEvery == 0 && c.connector.meddledWith(c.connector.facade.Load().Stats()) {
		c.connector.checkSoon()
	}
	return true
}

// unbind gives the physical connection back to its pool. It is false if the pool has taken it back already.
func (c *Conn) unbind() bool {
	p := c.phys
	if !p.lender.Returning() {
		c.lost(p)
		return false
	}
	c.phys, c.lastResort, c.skipped, c.bad = nil, false, false, false
	p.giveBack(false)
	return true
}

// abandon is deferred around every call into a driver, and around values that convert themselves: if they panic, the
// connection is in a state that nobody knows, and database/sql may never return it.
func (c *Conn) abandon(done *bool) {
	if !*done {
		c.panicked()
	}
}

// panicked gives the connection up under a call that will not return.
func (c *Conn) panicked() {
	p := c.phys
	if p == nil {
		return
	}
	if p.guard.exit() {
		defer p.guard.leave()
	}
	p.unfit, p.unended = true, true
	c.unbind()
}

// lost lets go of a connection that a guard has fired on, and returns what its borrower gets for the rest of the checkout.
// One that was taken back by its pool must not be touched any more.
func (c *Conn) lost(p *Physical) error {
	revoked := p.revoked.Load()
	if revoked == nil {
		return p.doom
	}
	if c.phys == p {
		c.phys, c.refusal, c.lastResort = nil, *revoked, false
	}
	return *revoked
}

// whyGone is what a statement or a transaction gets whose connection is gone.
func (c *Conn) whyGone() error {
	if c.refusal != nil {
		return c.refusal
	}
	return sqldriver.ErrBadConn
}

// Close throws the connection away: because it is surplus, because database/sql saw ErrBadConn, or because the
// facade is closed. database/sql may hold its own lock here.
func (c *Conn) Close() error {
	if p := c.phys; p != nil {
		c.phys = nil
		if p.lender.Returning() {
			p.current.drop()
			p.lender.Discarded()
		}
		return nil
	}
	if !c.dropped {
		c.connector.checkSoon()
	}
	return nil
}

func (c *Conn) noteBad(err error) {
	if err != nil && errors.Is(err, sqldriver.ErrBadConn) {
		c.bad = true
	}
}

// bound returns the physical connection of this checkout.
func (c *Conn) bound() (*Physical, error) {
	if c.phys != nil {
		return c.phys, nil
	}
	return nil, c.whyGone()
}

// Raw gives f the driver's own connection. What f does to the session cannot be known, so it is set up again before
// it is lent to anybody else.
func (c *Conn) Raw(f func(driverConn any) error) error {
	p, err := c.bound()
	if err != nil {
		return err
	}
	p.touched, c.lastResort = true, false // f's session must not be replaced behind its back
	p.renames()
	if !c.enter(p) {
		return c.lost(p)
	}
	done := false
	defer c.abandon(&done)
	err = f(p.conn)
	done = true
	c.exit(p)
	c.noteBad(err)
	return err
}

// enter begins a driver call that is no statement, and exit ends it. It is false if the connection was taken back.
func (c *Conn) enter(p *Physical) bool {
	if p.guard.enter(forever, 0, p.cut, nil, 0) || p.doom != nil && p.enterLate() {
		return true
	}
	c.lost(p)
	return false
}

func (c *Conn) exit(p *Physical) {
	if p.guard.exit() {
		c.lost(p)
		p.guard.leave()
	}
}
