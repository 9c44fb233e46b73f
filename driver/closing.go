package driver

import "sync/atomic"

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
