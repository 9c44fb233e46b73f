package testserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 60 * time.Second // of a server on a busy machine
	stopTimeout  = 15 * time.Second // then it is killed

	// restartPatience is how long a server that was killed may refuse to
	// start: PostgreSQL does while a backend of its former life still runs.
	restartPatience = 15 * time.Second
)

// engine is what differs from one kind of server to another.
type engine interface {
	name() string       // for directories
	accounts() []string // to run as when the tests run as root, best first
	version() string    // such as "15.18"

	// initialise is the command that makes dir/data.
	initialise(dir string) []string
	// secret is the content of dir/secret, which initialise or command reads.
	secret(password string) string
	// command runs the server in the foreground, over dir/data.
	command(dir string, port int) []string
	// ready reports whether the server in dir with this process id serves.
	ready(dir string, pid int) bool

	dsn(port int, password string) string
	stopSignal() syscall.Signal // ends the server in good order
	quitSignal() syscall.Signal // ends it at once; its data is given up
}

// Server is a private server that one test has for itself. Its methods end the
// test when they fail, so call them on the test's goroutine.
type Server struct {
	DSN string // stays the same through every restart

	tb     testing.TB // nil for the server that all tests share
	engine engine
	dir    string
	port   int

	mu      sync.Mutex // guards the following; held until a start or stop is done
	process *process   // nil: it does not run
	paused  bool
}

// newServer starts a server on a free port.
func newServer(e engine) (*Server, error) {
	dir, password, err := serverDir(e)
	if err != nil {
		return nil, err
	}
	s := &Server{engine: e, dir: dir}
	if !keep(s) {
		return nil, errors.New("testserver.Stop was called meanwhile")
	}
	// Somebody else may take the port before the server does.
	for range 3 {
		if s.port, err = freePort(); err != nil {
			break
		}
		if err = s.start(0); err == nil {
			break
		}
	}
	s.DSN = e.dsn(s.port, password)
	return s, err
}

// freePort finds a port that a restarted server will find free again: it lies
// below those that systems hand out to outgoing connections.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := 20000 + rand.IntN(12000)
		var l net.Listener
		if l, err = net.Listen("tcp", localAddr(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

func localAddr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Addr returns the server's host:port.
func (s *Server) Addr() string { return localAddr(s.port) }

// Start starts a server that was stopped or killed, on the same port and data,
// and returns once it serves.
func (s *Server) Start() {
	s.tb.Helper()
	if err := s.start(restartPatience); err != nil {
		s.tb.Fatalf("testserver: %v", err)
	}
}

// Stop shuts the server down in good order and returns once its port is
// closed. Clients are told, as by an administrator.
func (s *Server) Stop() { s.end(s.engine.stopSignal()) }

// Restart is Stop and Start.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Stop()
	s.Start()
}

// Kill ends the server as a crash does: its clients find their connections
// dead. What was committed is there after Start.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Pause freezes the server: its sockets stay open and take bytes, and nobody
// answers. Where that cannot be done, which is outside Linux, it skips the
// test.
func (s *Server) Pause() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || s.paused {
		s.tb.Fatal("testserver: the server does not run, or is paused already")
	}
	if err := s.process.stop(); err != nil {
		s.tb.Skipf("testserver: cannot pause a server here: %v", err)
	}
	s.paused = true
}

// Resume ends Pause.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumeLocked()
}

func (s *Server) resumeLocked() {
	if s.paused {
		s.process.resume()
		s.paused = false
	}
}

// quit ends the server for good, as fast as can be without leavings.
func (s *Server) quit() { s.end(s.engine.quitSignal()) }

// discard ends the server and removes its data.
func (s *Server) discard() {
	s.quit()
	forget(s)
	if err := os.RemoveAll(s.dir); err != nil {
		s.tb.Logf("testserver: %v", err)
	}
}

func (s *Server) start(patience time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return errors.New("the server runs already")
	}
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		p, err := start(s.engine, s.dir, s.engine.command(s.dir, s.port)...)
		if err != nil {
			return err
		}
		if s.awaitReady(p) {
			s.process = p
			return nil
		}
		gaveUp := !p.exited()
		p.end(syscall.SIGKILL, stopTimeout)
		if gaveUp || time.Since(began) >= patience {
			return fmt.Errorf("the server did not start on %s; its log ends:\n%s", s.Addr(), logTail(s.dir))
		}
	}
}

// awaitReady reports whether the server came up. It did not if its process
// ended, or if time ran out.
func (s *Server) awaitReady(p *process) bool {
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if p.exited() {
			return false
		}
		if s.engine.ready(s.dir, p.pid) {
			return true
		}
	}
	return false
}

func (s *Server) end(signal syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return
	}
	s.resumeLocked() // what is frozen takes no signal but SIGKILL
	s.process.end(signal, stopTimeout)
	s.process = nil
	// The id may soon be another process's: the watchdog must not see it.
	os.Remove(filepath.Join(s.dir, "pid"))
}

// logTail returns the last lines that the commands in dir wrote.
func logTail(dir string) string {
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-2000):])
}
