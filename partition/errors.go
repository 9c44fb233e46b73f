package partition

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// The sentinels of errors.Is. They come wrapped, with the figures in an [AcquireError].
var (
	// ErrRejected: this pool refuses you now. It covers ErrQueueFull, ErrAcquireTimeout and ErrPaused, and neither an
	// unknown tag (a bug of the caller) nor a caller whose own context ended. Nothing was executed. Over HTTP: 503, with
	// Retry-After from [AcquireError.RetryAfter].
	ErrRejected = errors.New("partition: rejected")
	// ErrQueueFull: every permit was taken, and as many callers as may wait were waiting.
	ErrQueueFull = errors.New("partition: queue full")
	// ErrAcquireTimeout: the pool had no connection for the caller within its AcquireTimeout, because every permit was
	// taken or because the server was slow to accept a new one (slower than DialTimeout counts, too). It is not
	// context.DeadlineExceeded.
	ErrAcquireTimeout = errors.New("partition: acquire timeout")
	// ErrPaused: an operator has paused the pool.
	ErrPaused = errors.New("partition: pool paused")
	// ErrReclaimed: the connection had been held for longer than the pool's MaxHold allows, or the registry was drained, and
	// was taken back. It comes from every call that the late holder still makes on it: rows, statements, the transaction,
	// the *sql.Conn. What was not committed is rolled back. It is not ErrRejected.
	ErrReclaimed = errors.New("partition: connection taken back from its holder")
	// ErrUnknownWorkload: the context carries a tag that no pool has. It is not ErrRejected: waiting does not help.
	ErrUnknownWorkload = errors.New("partition: unknown workload")
	// ErrUntagged: WithRequiredTag is set and the context carries no tag. It is not ErrRejected.
	ErrUntagged = errors.New("partition: context carries no workload tag")
)

// Reason is why an acquire ended without a connection. Its text is stable: a label for metrics.
type Reason string

// The reasons.
const (
	ReasonQueueFull      Reason = "queue_full"
	ReasonAcquireTimeout Reason = "acquire_timeout"
	ReasonPaused         Reason = "paused"
	// ReasonCallerGaveUp: the caller's context ended before it had a connection.
	ReasonCallerGaveUp Reason = "caller_gave_up"
)

// ofTheWall reports whether the pool was the reason, and not a switch or the caller.
func (r Reason) ofTheWall() bool { return r == ReasonQueueFull || r == ReasonAcquireTimeout }

var reasonErrors = map[Reason]error{
	ReasonQueueFull:      ErrQueueFull,
	ReasonAcquireTimeout: ErrAcquireTimeout,
	ReasonPaused:         ErrPaused,
}

// AcquireError is returned, from every entry point of database/sql, to a caller that got no connection: errors.As finds
// it. Nothing was executed, and the caller holds nothing.
//
// It Is the sentinel of its Reason, and ErrRejected. Where the caller's own context ended it is neither: then it
// unwraps to the context's error.
type AcquireError struct {
	Workload workload.Name
	Reason   Reason
	Waited   time.Duration // in the queue and for a dial together
	Dialing  bool          // the permit was there; what did not come in time was the server

	// The pool at that moment. InUse counts permits; it includes connections that are being dialed or closed.
	// In Observe mode they are the shared pool's, and MaxWaiting is math.MaxInt.
	MaxOpenConns, InUse, Waiting, MaxWaiting int

	// LimitedBy is what stood in the way.
	LimitedBy LimitingFactor
	// Holders are those who have held a connection of the pool for longest at that moment, at most three.
	Holders []Holder
	// Nested: a connection of the same registry is held under the same call of workload.With, has been since before this
	// acquire began, and no statement runs on it now. If that is the same request, it is waiting for itself: use the
	// transaction or the *sql.Conn that it has, or close its rows first. It is not set where several callers waited under
	// that context, as many jobs under one base context do.
	Nested bool

	retryAfter time.Duration
	ctxErr     error
}

// Error says which pool refused, why, and how full it was.
func (e *AcquireError) Error() string {
	what := string(e.Reason)
	switch e.Reason {
	case ReasonQueueFull:
		what = "queue full"
	case ReasonAcquireTimeout:
		what = "no connection within the acquire timeout"
		if e.Dialing {
			what = "the server accepted no connection in time"
		}
	case ReasonPaused:
		what = "paused"
	case ReasonCallerGaveUp:
		what = "caller gave up while it waited for a connection: " + e.ctxErr.Error()
	}
	text := fmt.Sprintf("partition: pool %q: %s (waited %v, in use %d of %d, waiting %d",
		string(e.Workload), what, e.Waited.Round(time.Microsecond), e.InUse, e.MaxOpenConns, e.Waiting)
	if e.MaxWaiting < math.MaxInt { // as it is in Observe mode
		text += fmt.Sprintf(" of %d", e.MaxWaiting)
	}
	if len(e.Holders) > 0 {
		text += fmt.Sprintf(", longest held %v: %s", e.Holders[0].Age.Round(time.Millisecond), e.Holders[0].Activity)
	}
	if e.Nested {
		text += "; this request already holds a connection, and may be waiting for itself"
	}
	return text + ")"
}

// Is matches ErrRejected and the sentinel of the reason.
func (e *AcquireError) Is(target error) bool {
	sentinel := reasonErrors[e.Reason]
	return sentinel != nil && (target == ErrRejected || target == sentinel)
}

// Unwrap returns the error of the caller's context if that ended the acquire, else nil.
func (e *AcquireError) Unwrap() error { return e.ctxErr }

// RetryAfter is a guess at when a permit will be free for one more caller, from how long permits have been held: at
// least 1 ms and at most a minute. For a Retry-After header round it up to whole seconds.
func (e *AcquireError) RetryAfter() time.Duration {
	return min(max(e.retryAfter, time.Millisecond), time.Minute)
}

// Timeout reports whether time ran out: the pool's or the caller's.
func (e *AcquireError) Timeout() bool {
	return e.Reason == ReasonAcquireTimeout || errors.Is(e.ctxErr, context.DeadlineExceeded)
}

// errClosed is database/sql's own error for a closed handle, which it does not export.
var errClosed = sync.OnceValue(func() error {
	db := sql.OpenDB(noServer{})
	db.Close()
	return db.Ping()
})
