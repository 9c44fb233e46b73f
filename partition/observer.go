package partition

import (
	"context"
	"fmt"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Observer is told what happens in the pools, for metrics, traces and logs. It implements any of [AcquireObserver],
// [ReleaseObserver], [StatementObserver], [ConnObserver], [LeakObserver] and [EndObserver]; one that implements none is refused by Open. Its methods
// are called on the goroutine of the caller concerned, except where they say otherwise, by many at once; they must
// not block and must not use the database.
type Observer any

// AcquireObserver is told of every acquire that ended.
type AcquireObserver interface {
	AcquireDone(ctx context.Context, e AcquireEvent)
}

// ReleaseObserver is told of every permit that is given back. A connection that is thrown away gives its permit back
// when it is closed, on a goroutine of its own.
type ReleaseObserver interface{ Released(e ReleaseEvent) }

// StatementObserver is told of statements that ran into their timeout.
type StatementObserver interface {
	StatementTimedOut(ctx context.Context, e StatementEvent)
}

// ConnObserver is told of physical connections, on goroutines of their own.
type ConnObserver interface {
	ConnOpened(e ConnEvent)
	ConnClosed(e ConnEvent)
}

// AcquireEvent is an acquire that ended, with a connection if Err is nil.
type AcquireEvent struct {
	Pool   workload.Name
	Waited time.Duration
	Err    error // an *AcquireError, or the error of a dial
}

// ReleaseEvent is a permit given back.
type ReleaseEvent struct {
	Pool workload.Name
	Held time.Duration
}

// StatementEvent is a statement that exceeded its limit.
type StatementEvent struct {
	Pool           workload.Name
	Limit, Elapsed time.Duration
	ByServer       bool // the server ended it; else the client's guard
}

// ConnEvent is a physical connection opened, refused, or closed.
type ConnEvent struct {
	Pool   workload.Name
	Took   time.Duration // to dial and set up, or to close
	Err    error
	Reason CloseReason // of a close
}

// CloseReason is why a physical connection was closed. Its text is stable.
type CloseReason string

// The reasons.
const (
	CloseBad       CloseReason = "bad"       // broken, or left in an unknown state
	CloseExpired   CloseReason = "expired"   // ConnMaxLifetime, ConnMaxIdleTime, or settings that Apply made looser
	CloseSurplus   CloseReason = "surplus"   // more than MaxIdleConns, or than a smaller MaxOpenConns allows
	CloseShutdown  CloseReason = "shutdown"  // the registry is closed
	CloseReclaimed CloseReason = "reclaimed" // taken back from its holder: MaxHold, or Drain
)

// A LeakObserver is told of connections that are held too long, on goroutines of their own.
type LeakObserver interface {
	// Leaked: longer than LeakAfter; once for each borrowing.
	Leaked(e LeakEvent)
	// Reclaimed: longer than MaxHold, and taken back.
	Reclaimed(e LeakEvent)
}

// EndObserver is told of statements that their callers gave up, once their end on the server is known or was given up,
// too, on goroutines of their own.
type EndObserver interface{ StatementEnded(e EndEvent) }

// LeakEvent is a connection held too long.
type LeakEvent struct {
	Pool   workload.Name
	Holder Holder
}

// EndEvent is the end of a statement that was cut short.
type EndEvent struct {
	Pool    workload.Name
	Outcome EndOutcome
	Took    time.Duration // since its caller was let go
}

// observers holds who is told what.
type observers struct {
	acquire   []AcquireObserver
	release   []ReleaseObserver
	statement []StatementObserver
	conn      []ConnObserver
	leak      []LeakObserver
	end       []EndObserver
}

func (o *observers) add(v Observer) error {
	known := false
	if a, ok := v.(AcquireObserver); ok {
		o.acquire, known = append(o.acquire, a), true
	}
	if r, ok := v.(ReleaseObserver); ok {
		o.release, known = append(o.release, r), true
	}
	if s, ok := v.(StatementObserver); ok {
		o.statement, known = append(o.statement, s), true
	}
	if c, ok := v.(ConnObserver); ok {
		o.conn, known = append(o.conn, c), true
	}
	if l, ok := v.(LeakObserver); ok {
		o.leak, known = append(o.leak, l), true
	}
	if e, ok := v.(EndObserver); ok {
		o.end, known = append(o.end, e), true
	}
	if !known {
		return fmt.Errorf("partition: WithObserver: %T implements none of the observer interfaces", v)
	}
	return nil
}

func (o *observers) acquireDone(ctx context.Context, e AcquireEvent) {
	for _, a := range o.acquire {
		a.AcquireDone(ctx, e)
	}
}

func (o *observers) released(e ReleaseEvent) {
	for _, r := range o.release {
		r.Released(e)
	}
}

func (o *observers) statementTimedOut(ctx context.Context, e StatementEvent) {
	for _, s := range o.statement {
		s.StatementTimedOut(ctx, e)
	}
}

func (o *observers) connOpened(e ConnEvent) {
	for _, c := range o.conn {
		c.ConnOpened(e)
	}
}

func (o *observers) connClosed(e ConnEvent) {
	for _, c := range o.conn {
		c.ConnClosed(e)
	}
}

func (o *observers) leaked(e LeakEvent) {
	for _, l := range o.leak {
		l.Leaked(e)
	}
}

func (o *observers) reclaimed(e LeakEvent) {
	for _, l := range o.leak {
		l.Reclaimed(e)
	}
}

func (o *observers) statementEnded(e EndEvent) {
	for _, x := range o.end {
		x.StatementEnded(e)
	}
}
