package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"net"
	"time"
)

// ErrHung is returned by Reset for a connection that did not answer before its deadline.
var ErrHung = errors.New("driver: connection did not answer in time")

// Physical is a real connection, and what has to be known of it from one borrower to the next.
//
// It is used by one goroutine at a time: that of the virtual connection it is bound to (database/sql sees to that), or
// the one of its pool that has taken it from the idle list. Only its guard's timer comes from elsewhere.
type Physical struct {
	raw
	lender Lender
	guard  *guard

	life    context.Context // ends when the guard fires; for callers whose own context cannot end
	endLife context.CancelFunc
	cut     context.CancelFunc // ends a call for which no context was derived that could
	lent    *lentContext       // the last that was made; it never changes, so it serves the same caller again
	current checkout
	socket  net.Conn // nil but for pgx: see netConn

	stmts   stmtCache
	texts   textCache
	inTx    Traits // what every statement of the transaction that runs has besides its own
	touched bool   // a borrower may have changed the session's settings
	unfit   bool   // must not be lent again, for another reason than that the guard fired
	doom    error  // the guard fired: what later calls of the same borrower get
}

// NewPhysical makes conn lendable by lender, within a registry that counts its statements in texts.
func NewPhysical(conn sqldriver.Conn, lender Lender, texts *Texts) *Physical {
	p := &Physical{raw: newRaw(conn), lender: lender, guard: newGuard(), socket: netConn(conn)}
	p.stmts.texts = texts
	p.life, p.endLife = context.WithCancel(context.Background())
	p.cut = p.endLife
	if p.socket != nil {
		p.cut = p.cutSocket
	}
	return p
}

// Reset makes an idle connection ready for its next borrower, before deadline on the clock of Now: the driver's own
// reset, statements that were closed meanwhile, and settings that the last borrower may have changed. Any of it may be
// network I/O. The error is driver.ErrBadConn, ErrHung or that of Lender.Restore; after any of them the connection is to
// be discarded.
func (p *Physical) Reset(ctx context.Context, deadline time.Duration) error {
	if p.resetter == nil && !p.touched && !p.stmts.stale() {
		return nil
	}
	derived, cancel := p.derive(ctx)
	p.current = checkout{ctx, derived, cancel}
	p.guard.enter(deadline, 0, p.ender(cancel))
	err := p.reset(derived)
	if p.guard.exit() {
		err = ErrHung
	}
	if err != nil {
		p.current.drop()
	}
	return err
}

func (p *Physical) reset(ctx context.Context) error {
	if p.resetter != nil {
		// As in database/sql, an error other than ErrBadConn does not keep the connection from being used.
		if err := p.resetter.ResetSession(ctx); errors.Is(err, sqldriver.ErrBadConn) {
			return err
		}
	}
	if p.stmts.stale() {
		p.stmts.sweep()
	}
	if p.touched {
		if err := p.lender.Restore(ctx); err != nil {
			return err
		}
		p.touched = false
	}
	return nil
}

// ender is the function that ends a call whose context was derived with cancel.
func (p *Physical) ender(cancel context.CancelFunc) context.CancelFunc {
	if cancel == nil {
		return p.cut
	}
	return cancel
}

// cutSocket ends whatever call of pgx now runs. The connection is closed then, by pgx or by us.
func (p *Physical) cutSocket() { p.socket.SetDeadline(time.Unix(1, 0)) }

// Close closes the connection. It may take as long as the driver takes, and returns when the connection is really gone.
func (p *Physical) Close() error {
	p.guard.stop()
	p.endLife()
	p.stmts.forget()
	if p.socket != nil && p.doom != nil && cleanupDone(p.conn) == nil {
		p.socket.SetDeadline(time.Time{}) // the guard came too late: it ended nothing, and a pgxpool may keep the connection
	}
	err := p.conn.Close()
	awaitCleanup(p.conn)
	return err
}

// Raw is the driver's own connection.
func (p *Physical) Raw() sqldriver.Conn { return p.conn }

// Release gives a connection back that a pool has borrowed from itself.
func (p *Physical) Release(bad bool) { p.lender.Returned(p.release() || bad) }

// release ends a borrowing and reports whether the connection is too bad to be lent again.
func (p *Physical) release() (bad bool) {
	p.current.drop()
	bad = p.doom != nil || p.unfit || p.stmts.busy > 0
	return bad || p.validator != nil && !p.validator.IsValid()
}

// keepsAfterRollback is database/sql's rule: a driver that cannot both reset and validate a session loses the
// connection of a transaction that was rolled back because its context ended.
func (p *Physical) keepsAfterRollback() bool { return p.resetter != nil && p.validator != nil }
