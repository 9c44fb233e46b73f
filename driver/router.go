package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"time"
)

// A Router leads a checkout to a physical connection.
type Router interface {
	// Try returns an open and idle connection of the pool that ctx asks for, without waiting and without dialing.
	// last stands behind the connection that the caller had last: it may be had again if nobody has it now, and one of
	// another pool must not be returned. Try returns nil where there is none to be had so. A non-nil error is final: the
	// caller gets it from its first call (database/sql passes no error of ResetSession on).
	Try(ctx context.Context, last Lender) (*Physical, error)

	// Acquire returns a connection of the pool that ctx asks for; it may wait and it may dial, and fresh says whether it
	// did dial this one. Its error reaches the caller of database/sql unchanged.
	Acquire(ctx context.Context) (p *Physical, fresh bool, err error)

	// Driver is the driver of the physical connections.
	Driver() sqldriver.Driver

	// Notice reports a setting of the facade that has no effect; it may be called from any goroutine.
	Notice(Notice)

	// Close is called when the facade is closed.
	Close() error
}

// Notice is a setting that somebody made on the facade and that cannot mean there what it means elsewhere.
type Notice int

const (
	// NoticeCapped: SetMaxOpenConns was called on the facade, and has been undone.
	NoticeCapped Notice = iota
	// NoticeLifetime: a lifetime or idle time was set on the facade; it rotates virtual connections only.
	NoticeLifetime
)

// A Lender stands behind one Physical: the pool that it belongs to, and what that pool knows of it. Its methods are
// called by the goroutine that has the connection checked out, unless they say otherwise.
type Lender interface {
	// Inspect says what the text of a statement means for the connection. It is asked once per text, more or less.
	Inspect(query string) Traits

	// Limit is the limit of a statement with these traits under ctx.
	Limit(ctx context.Context, t Traits) Limit

	// Failed returns what the caller is to get for a call that failed, and whether it is known that the statement runs no
	// more on the server.
	Failed(ctx context.Context, f Failure) (err error, ended bool)

	// Begun sets a transaction up that has just begun, and says whether the server now ends its statements at the limit
	// although it does so nowhere else. An error rolls the transaction back and discards the connection.
	Begun(ctx context.Context) (enforced bool, err error)

	// Restore sets the session up again after a borrower may have changed it. An error discards the connection.
	Restore(ctx context.Context) error

	// Returning asks for leave to give the connection back, before it is touched for that. It is false if the pool has
	// taken the connection back already: then nothing of it is the borrower's any more.
	Returning() bool

	// Returned takes the connection back, and is told whether it must not be lent again. It does not block.
	Returned(bad bool)

	// Discarded takes the connection back to be thrown away. It is called under database/sql's locks: it does not
	// block, and calls nothing of the facade and no code of users on this goroutine.
	Discarded()

	// Replace throws the connection away as bad and returns a newly dialed one under the same permit. After an
	// error neither is the caller's any more.
	Replace(ctx context.Context) (*Physical, error)
}

// Traits is what the text of a statement says about it.
type Traits uint8

const (
	// TouchesSettings: the statement may change what set-up had set on the session.
	TouchesSettings Traits = 1 << iota
	// ServerEnforced: the server itself ends this statement at the session's statement timeout.
	ServerEnforced
)

// Limit is how long a statement may run. The zero value is no limit.
type Limit struct {
	Statement time.Duration // 0: none
	Grace     time.Duration // how much later than Statement the guard fires, to let the server be first
}

// Failure is a driver call that returned an error.
type Failure struct {
	Err     error
	Limit   Limit
	Elapsed time.Duration // since the statement began
	Guarded bool          // the guard ended it
}
