package fakedb

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"time"
)

// Kind is a kind of driver call.
type Kind string

// The kinds of calls. A Next and a CheckNamedValue are not kept in the log.
const (
	OpenDSN        Kind = "open" // OpenConnector of the driver; the text is the DSN
	Dial           Kind = "dial" // Connect, or Open of a driver without connectors; the text is the DSN
	Ping           Kind = "ping"
	Exec           Kind = "exec"
	Query          Kind = "query"
	Prepare        Kind = "prepare"
	Begin          Kind = "begin"
	Commit         Kind = "commit"
	Rollback       Kind = "rollback"
	Reset          Kind = "reset"
	Valid          Kind = "valid"
	Next           Kind = "next" // also NextResultSet
	Check          Kind = "check"
	CloseRows      Kind = "close rows"
	CloseStmt      Kind = "close stmt"
	CloseConn      Kind = "close"
	CloseConnector Kind = "close connector"
)

// Call is a driver call.
type Call struct {
	Kind Kind
	N    int    // from 1: the how-manieth of its kind on this server
	Conn int    // the connection's ID; 0 before there is one
	Stmt int    // the prepared statement's ID; 0 if there is none. On a Prepare, 0
	Text string // of the statement; the DSN of a Dial
	Args []sqldriver.NamedValue
	Tx   sqldriver.TxOptions // of a Begin
	Seen any                 // what the probe saw in its context: see WithProbe
	At   time.Time           // when it began

	// Filled in when the call has ended. Of a call that panicked, Err is nil.
	Done bool
	Err  error
}

// String is for comparing whole logs: `conn 1 exec "ok"`. Arguments are left out.
func (c Call) String() string {
	text := string(c.Kind)
	if c.Conn != 0 {
		text = fmt.Sprintf("conn %d %s", c.Conn, c.Kind)
	}
	if c.Text != "" {
		text += fmt.Sprintf(" %q", c.Text)
	}
	return text
}

// Hook runs at the beginning of a call; an error is the call's result. It may block. Its context is that of the call,
// or one that never ends where the call has none.
type Hook func(context.Context, Call) error

// On sets the hook of a kind of call; nil removes it.
//
//   - Dial: the connection opens, and counts as open, when the hook has returned.
//   - CloseConn: the connection is closed, and counts as closed, when the hook has returned, whatever it returned.
//   - Valid: an error makes IsValid false.
//   - An error that is driver.ErrBadConn breaks the connection.
func (s *Server) On(kind Kind, hook Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks[kind] = hook
}

// Fail is a hook that fails.
func Fail(err error) Hook { return func(context.Context, Call) error { return err } }

// First limits a hook to the first n calls of its kind on the server, counted from the server's beginning.
func First(n int, hook Hook) Hook {
	return func(ctx context.Context, call Call) error {
		if call.N > n {
			return nil
		}
		return hook(ctx, call)
	}
}

// Delay is a hook that waits for d, or until the context is done.
func Delay(d time.Duration) Hook {
	return func(ctx context.Context, _ Call) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Stall is a hook that waits until release is closed, or gives a value, and does not look at the context.
func Stall(release <-chan struct{}) Hook {
	return func(context.Context, Call) error {
		<-release
		return nil
	}
}

// Calls returns the log: the calls of these kinds, or all, in the order in which they began.
func (s *Server) Calls(kinds ...Kind) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Call
	for _, call := range s.log {
		if len(kinds) == 0 || slices.Contains(kinds, call.Kind) {
			list = append(list, *call)
		}
	}
	return list
}

// ClearLog forgets the calls so far. Counters, Call.N included, and violations stay.
func (s *Server) ClearLog() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// perform is a call from beginning to end: the log, the hook, then body, which may be nil. A call that is refused is
// noted, no more.
func (s *Server) perform(ctx context.Context, call Call, body func() error, refused error) (err error) {
	entry, hook := s.begin(ctx, call)
	defer func() { s.end(entry, err) }()
	if refused != nil {
		return refused
	}
	if hook != nil {
		if err := hook(ctx, *entry); err != nil {
			return err
		}
	}
	if body == nil {
		return nil
	}
	return body()
}

// begin notes the call. The entry is read without the lock only by the call itself, until end.
func (s *Server) begin(ctx context.Context, call Call) (*Call, Hook) {
	call.Seen, call.At = s.probe(ctx), time.Now()
	call.Args = slices.Clone(call.Args)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[call.Kind]++
	call.N = s.counts[call.Kind]
	if s.logging && call.Kind != Next && call.Kind != Check {
		s.log = append(s.log, &call)
	}
	return &call, s.hooks[call.Kind]
}

func (s *Server) end(entry *Call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry.Done, entry.Err = true, err
}
