package testserver

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"
)

// link is one connection of a client and its counterpart to the server.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	once   sync.Once
	done   chan struct{} // closed when the link is cut

	mu     sync.Mutex   // guards server
	server *net.TCPConn // nil while it is dialled
}

// parcel is what was read at once and when it may go on. Without data it is
// the end of the stream.
type parcel struct {
	data []byte
	due  time.Time
}

func (l *link) run() {
	defer l.proxy.remove(l)
	defer l.close()
	server, err := net.DialTimeout("tcp", l.proxy.target, 10*time.Second)
	if err != nil || !l.attach(server.(*net.TCPConn)) {
		return
	}
	var directions sync.WaitGroup
	directions.Go(func() { l.forward(l.server, l.client) })
	directions.Go(func() { l.forward(l.client, l.server) })
	directions.Wait()
}

// attach reports whether the link is still wanted; if not, server is closed.
func (l *link) attach(server *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = server
	select {
	case <-l.done:
		server.Close()
		return false
	default:
		return true
	}
}

// reset ends the link so that both peers see a reset, whatever is under way.
func (l *link) reset() { l.end(func(c *net.TCPConn) { _ = c.SetLinger(0) }) }

// close ends the link in good order.
func (l *link) close() { l.end(func(*net.TCPConn) {}) }

func (l *link) end(prepare func(*net.TCPConn)) {
	l.once.Do(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(l.done)
		for _, c := range []*net.TCPConn{l.client, l.server} {
			if c != nil {
				prepare(c)
				c.Close()
			}
		}
	})
}

// forward passes on what src sends until its end, which it passes on too.
func (l *link) forward(dst, src *net.TCPConn) {
	parcels := make(chan parcel, 256)
	l.proxy.tasks.Go(func() {
		defer close(parcels)
		l.collect(parcels, src)
	})
	for p := range parcels {
		if !l.await(p.due) {
			return
		}
		if p.data == nil {
			_ = dst.CloseWrite() // the other side may be gone by itself
		} else if _, err := dst.Write(p.data); err != nil {
			l.reset()
			return
		}
	}
}

// collect reads src to its end. It stops early when the link is cut.
func (l *link) collect(parcels chan<- parcel, src io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !l.send(parcels, bytes.Clone(buf[:n])) {
			return
		}
		if err != nil {
			l.send(parcels, nil)
			return
		}
	}
}

func (l *link) send(parcels chan<- parcel, data []byte) bool {
	select {
	case parcels <- parcel{data, l.proxy.due()}:
		return true
	case <-l.done:
		return false
	}
}

// await waits until due and until the proxy does not hang. It reports whether
// the link is still there.
func (l *link) await(due time.Time) bool {
	if d := time.Until(due); d > 0 {
		select {
		case <-time.After(d):
		case <-l.done:
			return false
		}
	}
	select {
	case <-l.proxy.flowing():
		return true
	case <-l.done:
		return false
	}
}
