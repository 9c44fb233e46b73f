package testserver

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// echo is a server that sends back what it gets, until it gets no more.
func echo(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		tasks.Wait()
	})
	return l.Addr().String()
}

// setup returns a proxy before an echo server and a connection through it.
func setup(t *testing.T) (*Proxy, *net.TCPConn) {
	t.Helper()
	p := NewProxy(t, echo(t))
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return p, c.(*net.TCPConn)
}

func mustEcho(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	mustRead(t, c, text)
}

func mustRead(t *testing.T, c net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		t.Fatalf("got %q, %v, want %q", got, err, text)
	}
}

func TestProxyForwardsEverythingUpToTheEndOfTheStream(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	go func() {
		_, _ = c.Write(sent) // the comparison tells
		c.CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("got %d bytes, %v, want the %d that were sent", len(got), err, len(sent))
	}
}

func TestDelayHoldsBackEachDirection(t *testing.T) {
	t.Parallel()
	const delay = 15 * time.Millisecond
	c, err := net.Dial("tcp", Delay(t, echo(t), delay))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	mustEcho(t, c, "there and back")
	if took := time.Since(began); took < 2*delay {
		t.Errorf("a round trip took %v, less than twice %v", took, delay)
	}
}

func TestHangLosesNothing(t *testing.T) {
	t.Parallel()
	p, c := setup(t)
	mustEcho(t, c, "before")
	p.Hang()
	p.Hang() // twice is once
	if _, err := io.WriteString(c, "meanwhile"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v through a hanging proxy", n, err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	p.Resume()
	p.Resume()
	mustRead(t, c, "meanwhile")
	mustEcho(t, c, "after")
}

func TestCutResetsOpenConnectionsAndServesNewOnes(t *testing.T) {
	t.Parallel()
	p, c := setup(t)
	mustEcho(t, c, "before")
	p.Hang() // a cut goes through all the same
	p.Cut()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a cut connection gave %v, want a reset", err)
	}
	p.Resume()
	again, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	mustEcho(t, again, "after")
	if n := p.Conns(); n != 1 {
		t.Errorf("%d connections are open, want 1", n)
	}
}

func TestProxyClosesClientsOfADeadServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	c, err := net.Dial("tcp", NewProxy(t, l.Addr().String()).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes from nowhere", n)
	}
}
