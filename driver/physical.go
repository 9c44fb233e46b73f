package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// ErrHung is returned by Reset for a connection that did not answer before its deadline.
var ErrHung = errors.New("driver: connection did not answer in time")

// ErrPanicked is returned by Reset for a connection whose driver panicked over a statement that others have closed.
var ErrPanicked = errors.New("driver: panic")

// Physical is a real connection, and what has to be known of it from one borrower to the next.
//
// It is used by one goroutine at a time: that of the virtual connection it is bound to (database/sql sees to that), or
// the one of its pool that has taken it from the idle list. Only its guard's timer comes from elsewhere.
type Physical struct {
	// What every call touches comes first, close together: between two calls other work drives it out of the processor's
	// caches, or the next borrower is on another processor.
	lender  Lender
	cut     context.CancelFunc    // ends a call for which no context was derived that could
	doom    error                 // the guard fired: what later calls of the same borrower get
	cuts    bool                  // a deadline on socket ends every call: see pgxSocket
	watches bool                  // and that is all that the driver does when a context ends: see watch.go
	touched bool                  // a borrower may have changed the session's settings
	renamed bool                  // this borrower may have changed what names mean: see meaning.go
	unfit   bool                  // must not be lent again, for another reason than that the guard fired
	unended bool                  // a call ended before its statement had, as far as is known
	inTx    Traits                // what every statement of the transaction that runs has besides its own
	revoked atomic.Pointer[error] // taken back from its borrower: what that one gets
	raw
	guard  guard
	socket net.Conn    // nil where it is not known
	broken atomic.Bool // closed under a call that did not end
	rows   []openRows
	first  [1]openRows // room for rows
	stmts  stmtCache
	texts  textCache

	current checkout
	close   closing

	life    context.Context // ends when the guard fires; for callers whose own context cannot end
	endLife context.CancelFunc
	lent    *lentContext // the last that was made; it never changes, so it serves the same caller again
}

// NewPhysical makes conn lendable by lender, within a registry that counts its statements in texts.
func NewPhysical(conn sqldriver.Conn, lender Lender, texts *Texts) *Physical {
	p := &Physical{raw: newRaw(conn), lender: lender}
	p.close.done = make(chan struct{})
	p.rows = p.first[:0]
	p.guard.init(p.breakOff)
	p.guard.mend = p.mendSocket
	p.stmts.texts = texts
	p.life, p.endLife = context.WithCancel(context.Background())
	p.cut = p.endLife
	if p.socket = pgxSocket(p.inner); p.socket == nil {
		p.socket = socketOf(p.inner)
	} else if !p.wrapped {
		p.cuts, p.cut = true, p.cutSocket
		p.watches = watchesByDeadline(p.inner)
	}
	return p
}

// Reset makes an idle connection ready for its next borrower, before deadline on the clock of Now: the driver's own
// reset, statements that were closed meanwhile, and settings that the last borrower may have changed. Any of it may be
// network I/O. The error is driver.ErrBadConn, ErrHung, ErrPanicked or that of Lender.Restore; after any of them, and if it
// panics, the connection is to be discarded.
func (p *Physical) Reset(ctx context.Context, deadline time.Duration) error {
	if p.resetter == nil && !p.touched && !p.stmts.stale() {
		return nil
	}
	derived, cancel := p.derive(ctx)
	if !p.cuts {
		p.current = checkout{ctx, derived, cancel}
	}
	p.guard.enter(deadline, 0, p.ender(cancel), nil, 0)
	err := p.reset(derived)
	if p.guard.exit() {
		p.guard.leave()
		p.unended, err = true, ErrHung
	}
	if err != nil {
		p.current.drop()
	}
	return err
}

func (p *Physical) reset(ctx context.Context) error {
	if p.resetter != nil {
		// As in database/sql, an error other than ErrBadConn does not keep the connection from being used.
		if err := p.resetter.ResetSession(ctx); err != nil && errors.Is(err, sqldriver.ErrBadConn) {
			return err
		}
	}
	if p.stmts.stale() {
		if err := p.stmts.sweep(); err != nil {
			return err
		}
	}
	if p.touched {
		if err := p.lender.Restore(ctx); err != nil {
			return err
		}
		p.touched = false
	}
	return nil
}

// SetUpAgain has the next Reset restore the session, as if a borrower had changed it: its Lender now wants other settings.
// What the lender said of texts is asked anew.
func (p *Physical) SetUpAgain() { p.touched, p.texts = true, textCache{} }

// ender is the function that ends a call whose context was derived with cancel.
func (p *Physical) ender(cancel context.CancelFunc) context.CancelFunc {
	if cancel == nil {
		return p.cut
	}
	return cancel
}

// cutSocket ends whatever call of pgx now runs. The connection is closed then, by pgx or by us.
func (p *Physical) cutSocket() { p.socket.SetDeadline(time.Unix(1, 0)) }

// mendSocket undoes cutSocket where that ended nothing: it came too late. (A connection that pgx closes is pgx's, with the
// deadline that it has then.)
func (p *Physical) mendSocket() {
	if p.cuts && cleanupDone(p.inner) == nil {
		p.socket.SetDeadline(time.Time{})
	}
}

// breakOff closes the connection, or at least its socket, under a call that goes on although it was cancelled.
func (p *Physical) breakOff() {
	p.broken.Store(true)
	if p.socket != nil {
		p.socket.Close()
		return
	}
	defer func() { recover() }() // a driver that panics; Close panics with the same
	p.close.once(p)
}

// Revoke takes the connection away from its borrower, on another goroutine than that one's. A call that runs is cancelled,
// and broken off if it does not end within a second; every later one gets reason. When Revoke returns the borrower has
// let go, and the connection is the caller's, to be closed.
func (p *Physical) Revoke(reason error) Ending {
	p.revoked.Store(&reason)
	state := p.guard.revoke()
	if state&running == 0 {
		if state&doingRows != 0 {
			return Unended
		}
		return Ended
	}
	if p.guard.letGo(stuckAfter) {
		return Unended
	}
	p.broken.Store(true)
	go p.breakOff() // that may hang, too
	p.guard.letGo(stuckAfter)
	return BrokenOff
}

// enterLate begins a late call of the borrower's, unless the connection is no longer its.
func (p *Physical) enterLate() bool { return p.revoked.Load() == nil && p.guard.enterLate() }

// closedWithin waits at most d for done to be closed.
func closedWithin(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// Ending says what is known of the last statement of a connection that is to be closed.
type Ending int

const (
	// Ended: no statement runs any more.
	Ended Ending = iota
	// Unended: the last call was cut short, and its statement may still run on the server.
	Unended
	// BrokenOff: so it was, by closing the connection under it, since the driver did not end it.
	BrokenOff
)

// Ending returns how the last statement of a connection ended that its borrower has given back.
func (p *Physical) Ending() Ending {
	switch {
	case p.broken.Load():
		return BrokenOff
	case p.unended:
		return Unended
	}
	return Ended
}

// Doing is what the borrower of a connection is doing with it; any goroutine may ask.
func (p *Physical) Doing() Activity {
	switch s := p.guard.state.Load(); {
	case s == fired:
		return Stopping
	case s&running != 0:
		return Running
	case s&doingRows != 0:
		return RowsOpen
	case s&doingTx != 0:
		return IdleInTransaction
	}
	return Idle
}

// Activity is what the borrower of a connection is doing.
type Activity string

// The activities.
const (
	Running           Activity = "statement running"
	RowsOpen          Activity = "rows open"
	IdleInTransaction Activity = "idle in transaction"
	Idle              Activity = "idle" // a *sql.Conn between statements
	Stopping          Activity = "statement being stopped"
)

// Close closes the connection. It may take as long as the driver takes, and returns when the connection is really gone.
func (p *Physical) Close() error {
	p.guard.stop()
	p.endLife()
	if p.revoked.Load() == nil {
		p.current.drop() // of a Reset that panicked
		p.stmts.forget()
	}
	if p.doom != nil {
		p.mendSocket() // so that pgx can take its leave
	}
	err := p.close.once(p)
	awaitCleanup(p.inner)
	if p.revoked.Load() == nil {
		p.raw = raw{} // a virtual connection may remember p for a while
	}
	return err
}

// Raw is the driver's own connection.
func (p *Physical) Raw() sqldriver.Conn { return p.conn }

// Check pings the server, for a pool that has borrowed a connection from itself, and gives the connection back.
func (p *Physical) Check(ctx context.Context) error {
	c := &Conn{last: p.lender, phys: p}
	err := c.ping(ctx)
	if c.phys != nil { // it was not taken back
		p.unfit = p.unfit || err != nil
		c.unbind()
	}
	return err
}

// Release gives a connection back that a pool has borrowed from itself.
func (p *Physical) Release(bad bool) {
	if p.lender.Returning() {
		p.giveBack(bad)
	}
}

// giveBack gives the connection to its lender, as bad where the driver panics when it is asked whether it is. That goes on
// to the caller.
func (p *Physical) giveBack(bad bool) {
	asked := false
	defer func() {
		if !asked {
			p.lender.Returned(true)
		}
	}()
	bad = p.release() || bad
	asked = true
	p.lender.Returned(bad)
}

// release ends a borrowing and reports whether the connection is too bad to be lent again.
func (p *Physical) release() (bad bool) {
	if !p.cuts {
		p.current.drop()
	}
	p.guard.doing, p.renamed = 0, false
	switch {
	case p.doom != nil || p.unfit || p.stmts.busy > 0:
		return true
	case p.validator != nil && !p.validator.IsValid():
		return true
	case p.unended:
		// The driver itself is asked: not every wrapper passes that on. pgx cannot be asked, and has closed it by now.
		if v, ok := p.inner.(sqldriver.Validator); !ok || !v.IsValid() {
			return true
		}
	}
	p.unended = false
	return false
}

// keepsAfterRollback is database/sql's rule: a driver that cannot both reset and validate a session loses the
// connection of a transaction that was rolled back because its context ended.
func (p *Physical) keepsAfterRollback() bool { return p.resetter != nil && p.validator != nil }
