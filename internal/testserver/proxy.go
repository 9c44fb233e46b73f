package testserver

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections to a server, and fails them as networks do.
// It is closed when its test is over.
type Proxy struct {
	target   string
	listener net.Listener
	tasks    sync.WaitGroup // the accept loop and every link

	mu     sync.Mutex // guards the following; never held during I/O
	delay  time.Duration
	flow   chan struct{} // closed while bytes may pass
	links  map[*link]struct{}
	closed bool
}

// NewProxy starts a proxy on a free loopback port for the server at addr.
func NewProxy(tb testing.TB, addr string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("testserver: %v", err)
	}
	p := &Proxy{target: addr, listener: l, flow: make(chan struct{}), links: map[*link]struct{}{}}
	close(p.flow)
	p.tasks.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Delay starts a proxy that holds every byte back for d in each direction, so
// that a round trip takes 2d longer, and returns the address to use instead.
func Delay(tb testing.TB, addr string, d time.Duration) (proxyAddr string) {
	tb.Helper()
	p := NewProxy(tb, addr)
	p.SetDelay(d)
	return p.Addr()
}

// Addr returns the host:port that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// SetDelay has every byte that arrives from now on held back for d.
func (p *Proxy) SetDelay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Hang stops forwarding, both ways, while all sockets stay open and new ones
// are accepted: a network that swallows packets. Nothing is lost; [Proxy.Resume]
// delivers it.
func (p *Proxy) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flowsLocked() {
		p.flow = make(chan struct{})
	}
}

// Resume ends Hang.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.flowsLocked() {
		close(p.flow)
	}
}

// Cut resets all present connections, on both sides, and drops what was under
// way. New connections are served.
func (p *Proxy) Cut() {
	for _, l := range p.snapshot() {
		l.reset()
		p.remove(l)
	}
}

// Conns returns how many connections are open.
func (p *Proxy) Conns() int { return len(p.snapshot()) }

func (p *Proxy) snapshot() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

func (p *Proxy) flowsLocked() bool {
	select {
	case <-p.flow:
		return true
	default:
		return false
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.Cut()
	p.tasks.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		l := &link{proxy: p, client: client.(*net.TCPConn), done: make(chan struct{})}
		if !p.add(l) {
			client.Close()
			return
		}
		p.tasks.Go(l.run)
	}
}

// add reports whether the proxy is still open.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) due() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.delay)
}

func (p *Proxy) flowing() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flow
}
