package fakedb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Server is a fake database server together with its driver: it is a driver.Driver and driver.DriverContext itself.
// All its methods may be called at any time from any goroutine, from hooks and handlers too.
type Server struct {
	config // not changed after New

	// mu guards the following fields, and those of conn, stmt and connector that say so. It is a leaf: nothing waits, no
	// hook, handler or probe runs and no other lock is taken under it.
	mu         sync.Mutex
	stats      Stats
	conns      []*conn // conns[i].id is i+1
	stmts      int     // the last statement's ID
	schema     int     // moves on with every alter
	counts     map[Kind]int
	log        []*Call
	hooks      map[Kind]Hook
	handlers   []Handler
	violations []string
}

// New makes a server. It panics if the options ask for a combination of interfaces that no shape has.
func New(opts ...Option) *Server {
	s := &Server{config: defaults(), counts: make(map[Kind]int), hooks: make(map[Kind]Hook)}
	for _, opt := range opts {
		opt(&s.config)
	}
	mustHave(connShapes, s.ifaces&AllConn)
	mustHave(stmtShapes, s.ifaces&AllStmt)
	mustHave(rowsShapes, s.ifaces&(AllRows|RowsColumnScanner))
	return s
}

// Stats is a snapshot of what a server counted.
type Stats struct {
	Dials    int // dials begun
	Dialed   int // dials that succeeded
	Closed   int // connections closed by their user; Dialed - Closed are held, or leaked
	Open     int // connections on the server: neither closed, with no orphan still running, nor killed
	PeakOpen int

	Running     int // statements being executed: inside Exec, Query and Next, and orphans
	PeakRunning int

	Prepared    int // statements prepared
	StmtsClosed int // statements closed by their user, not merely lost with their connection

	ConnectorsClosed int // calls of a connector's Close
}

// Stats returns a snapshot.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// ConnStats is a snapshot of one connection.
type ConnStats struct {
	ID          int // from 1, in the order of dialling
	DSN         string
	Open        bool // on the server
	Closed      bool // by its user
	Killed      bool
	InTx        bool
	OpenRows    int
	Prepared    int // statements prepared on it
	StmtsClosed int // and closed by their user
}

// Conns returns a snapshot of every connection that was ever dialled, by ID.
func (s *Server) Conns() []ConnStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]ConnStats, len(s.conns))
	for i, c := range s.conns {
		list[i] = c.statsLocked()
	}
	return list
}

// Settings returns a copy of the session settings of a connection, nil if there is no such connection.
func (s *Server) Settings(connID int) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.connLocked(connID); c != nil {
		return maps.Clone(c.settings)
	}
	return nil
}

// Set changes a session setting of a connection, for handlers that answer a set-up statement.
func (s *Server) Set(connID int, name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.connLocked(connID); c != nil {
		c.settings[fold(name)] = value
	}
}

// Kill ends connections on the server, as a restart or an administrator does. A call that is running fails with an
// error that is not driver.ErrBadConn; the next call gets driver.ErrBadConn. Killing a closed connection ends its
// orphaned statement.
func (s *Server) Kill(connIDs ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range connIDs {
		if c := s.connLocked(id); c != nil {
			c.killLocked()
		}
	}
}

// KillAll kills every connection dialled so far.
func (s *Server) KillAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.killLocked()
	}
}

// Violations returns what users of the driver did that no correct user does, in the order in which it was noticed.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

func (s *Server) connLocked(id int) *conn {
	if id < 1 || id > len(s.conns) {
		return nil
	}
	return s.conns[id-1]
}

func (s *Server) violateLocked(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// fold makes names comparable: settings and commands are case-insensitive.
func fold(name string) string { return strings.ToLower(strings.TrimSpace(name)) }
