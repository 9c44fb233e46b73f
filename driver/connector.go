package driver

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

var (
	_ sqldriver.Connector = (*Connector)(nil)
	_ io.Closer           = (*Connector)(nil)
)

// Connector makes the virtual connections of one facade, and keeps that facade what it has to be: without a cap.
//
// A cap on the facade would queue all workloads together, in database/sql's own queue, which knows no workload; and
// database/sql then opens connections in a goroutine of its own, with a context that has no tag. Since every second
// program sets one, it is noticed and undone. So is a low number of idle connections.
type Connector struct {
	router Router
	texts  *Texts
	facade atomic.Pointer[sql.DB]
	idle   atomic.Int64 // virtual connections to keep

	capSeen      atomic.Bool
	lifetimeSeen atomic.Bool
	idleClosed   atomic.Int64 // virtual connections closed as surplus, when last looked
	checking     atomic.Bool
	watching     atomic.Bool                // a look is due, within watchEvery
	watcher      atomic.Pointer[time.Timer] // that one's
	closed       atomic.Bool
}

const (
	// capCheckEvery is how many returns of a virtual connection pass between two looks at the facade's settings. A look
	// takes database/sql's lock.
	capCheckEvery = 16
	// watchEvery is how long a cap on the facade lasts at most where nobody returns one.
	watchEvery = time.Second
)

// checkDelay bundles the looks that closed virtual connections ask for.
const checkDelay = time.Millisecond

// Open returns a facade over router that keeps up to idle virtual connections.
func Open(router Router, texts *Texts, idle int) (*sql.DB, *Connector) {
	c := &Connector{router: router, texts: texts}
	db := sql.OpenDB(c)
	c.facade.Store(db)
	c.KeepIdle(idle)
	return db, c
}

// KeepIdle changes how many unbound virtual connections the facade keeps.
func (c *Connector) KeepIdle(n int) {
	c.idle.Store(int64(n))
	c.facade.Load().SetMaxIdleConns(n)
}

// Driver implements driver.Connector. It is the driver of the physical connections: some tools look at it to find out
// which SQL to speak.
func (c *Connector) Driver() sqldriver.Driver { return c.router.Driver() }

// Close implements io.Closer; (*sql.DB).Close calls it.
func (c *Connector) Close() error {
	c.closed.Store(true)
	if t := c.watcher.Load(); t != nil {
		t.Stop() // else all that was closed would be kept in memory for as long
	}
	return c.router.Close()
}

// Connect binds a new virtual connection. It is where a checkout waits.
func (c *Connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	if _, ok := ctx.(nudge); ok {
		return nil, errNudge
	}
	c.watch()
	c.undoSettings()
	if c.capSeen.Load() && calledBy("sql.(*DB).connectionOpener", 16) { // for somebody who waits, whose context this is not
		return nil, sqldriver.ErrBadConn
	}
	p, fresh, err := c.router.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &Conn{connector: c, last: p.lender, phys: p, lastResort: !fresh}, nil
}

// watch begins to look at the facade's settings, unless that goes on already. Every checkout calls it: who holds all the
// connections that a cap allows neither connects nor returns one, and nobody else gets as far as to us.
func (c *Connector) watch() {
	if !c.watching.Load() && c.watching.CompareAndSwap(false, true) {
		c.watcher.Store(time.AfterFunc(watchEvery, c.look))
	}
}

// look looks, and goes on for as long as anything is out. A checkout that did not call for a look because this one was due
// is out by now, so that it is seen.
func (c *Connector) look() {
	c.watching.Store(false)
	if c.closed.Load() {
		return
	}
	c.undoSettings()
	if c.facade.Load().Stats().InUse > 0 {
		c.watch()
	}
}

// meddledWith reports whether undoSettings would find anything to do.
func (c *Connector) meddledWith(stats sql.DBStats) bool {
	return stats.MaxOpenConnections > 0 || stats.MaxIdleClosed != c.idleClosed.Load() ||
		stats.MaxLifetimeClosed+stats.MaxIdleTimeClosed > 0 && !c.lifetimeSeen.Load()
}

// checkSoon looks at the facade's settings in a moment. It may be called under database/sql's locks.
func (c *Connector) checkSoon() {
	if c.checking.CompareAndSwap(false, true) {
		time.AfterFunc(checkDelay, func() {
			c.checking.Store(false)
			c.undoSettings()
		})
	}
}

// undoSettings undoes a cap on the facade, and lets those go who queue behind it.
func (c *Connector) undoSettings() {
	db := c.facade.Load()
	if db == nil {
		return
	}
	stats := db.Stats()
	if !c.meddledWith(stats) {
		return
	}
	if stats.MaxLifetimeClosed+stats.MaxIdleTimeClosed > 0 && c.lifetimeSeen.CompareAndSwap(false, true) {
		c.router.Notice(NoticeLifetime)
	}
	if c.idleClosed.Swap(stats.MaxIdleClosed) != stats.MaxIdleClosed {
		db.SetMaxIdleConns(int(c.idle.Load())) // somebody has set it lower, and pays with a Connect per call
	}
	if stats.MaxOpenConnections <= 0 {
		return
	}
	if c.capSeen.CompareAndSwap(false, true) {
		c.router.Notice(NoticeCapped)
	}
	db.SetMaxOpenConns(0)
	db.SetMaxIdleConns(int(c.idle.Load()))
	c.nudge(db)
}

// nudgeTimeout is for a nudge that finds the facade capped again. Whoever did that is noticed in turn.
const nudgeTimeout = 100 * time.Millisecond

// nudge is the context of a checkout that wants no connection.
type nudge struct{ context.Context }

var errNudge = errors.New("driver: a nudge gets no connection")

// nudge makes database/sql look at its queue again, which it does after a failed Connect. It then has its opener
// goroutine connect for each that waits; that is answered with ErrBadConn, and the waiters try for themselves.
func (c *Connector) nudge(db *sql.DB) {
	ctx, cancel := context.WithTimeout(context.Background(), nudgeTimeout)
	defer cancel()
	if conn, err := db.Conn(nudge{ctx}); err == nil {
		conn.Close()
	}
}
