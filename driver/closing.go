package driver

import (
	sqldriver "database/sql/driver"
	"sync/atomic"
)

// closing is the one Close that a driver's connection has, although who breaks it off and who closes it may come together.
type closing struct {
	begun atomic.Bool
	done  chan struct{} // closed once the rest is set
	err   error
	panic any
}

// once closes the connection, or waits for who does.
func (c *closing) once(p *Physical) error {
	if c.begun.CompareAndSwap(false, true) {
		func() {
			defer close(c.done)
			defer func() { c.panic = recover() }()
			c.err = p.conn.Close()
		}()
	}
	<-c.done
	if c.panic != nil {
		panic(c.panic)
	}
	return c.err
}

// openRows are rows of a driver, known by their wrapper.
type openRows struct {
	wrapper *rows
	rows    sqldriver.Rows
}

func (p *Physical) opened(wrapper *rows, r sqldriver.Rows) {
	p.rows = append(p.rows, openRows{wrapper, r})
	p.guard.doing |= doingRows
}

func (p *Physical) closed(wrapper *rows) {
	last := len(p.rows) - 1
	for i := range p.rows {
		if p.rows[i].wrapper == wrapper {
			p.rows[i], p.rows[last] = p.rows[last], openRows{}
			p.rows = p.rows[:last]
			break
		}
	}
	if len(p.rows) == 0 {
		p.guard.doing &^= doingRows
	}
}

// CloseOpen closes the rows that are open on a connection which was taken back, and the statements that are prepared on it,
// as far as the driver does that in time. It comes before Close where the database may be a part of the program: there they
// would go on holding files and locks. (On a server they are gone with the session.)
func (p *Physical) CloseOpen() {
	if p.broken.Load() {
		return
	}
	rows, stmts := p.rows, p.stmts.open // as they are: a late holder may be reading them
	if len(rows)+len(stmts) == 0 {
		return
	}
	var late atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { recover() }() // a driver that panics: Close is still to come
		for _, o := range rows {
			o.rows.Close()
		}
		for e := range stmts {
			if late.Load() {
				return
			}
			e.stmt.Close()
		}
	}()
	if !closedWithin(done, stuckAfter) {
		late.Store(true)
		closedWithin(done, stuckAfter)
	}
}
