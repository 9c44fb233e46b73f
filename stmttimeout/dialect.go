package stmttimeout

import (
	"context"
	sqldriver "database/sql/driver"
	"strconv"
	"time"
)

// Settings is what a pool wants of each of its sessions. A zero field, or a negative duration, leaves the server's own
// setting. The zero Settings asks for nothing.
type Settings struct {
	// StatementTimeout limits each statement.
	StatementTimeout time.Duration
	// IdleInTransactionTimeout limits how long a session may sit in a transaction without a statement (PostgreSQL: rounded
	// up to 1 ms; MariaDB: to 1 s; MySQL has none).
	IdleInTransactionTimeout time.Duration
	// LockTimeout limits each wait for a lock (PostgreSQL: rounded up to 1 ms; MariaDB and MySQL: to 1 s, for row locks and
	// metadata locks both).
	LockTimeout time.Duration
	// ReadOnly makes the session's transactions read-only by default. A transaction may still ask for write access: this
	// keeps mistakes out, not attackers.
	ReadOnly bool
	// Workload is appended to the session's application_name after a slash, so that pg_stat_activity shows the pools
	// (PostgreSQL alone). Empty: application_name is left alone.
	Workload string
	// ApplicationName stands before the slash where the connection has no application_name of its own. Empty: "sqlbulkhead".
	ApplicationName string
	// BackendPID is the process id that the server gave the connection together with its cancellation key, 0 where the
	// driver does not tell. PostgreSQL alone: if another process answers, Setup changes nothing and returns [ErrPooled].
	BackendPID int64
}

// Session is one physical connection during its set-up.
type Session interface {
	// QueryRow returns the first row of a statement without arguments, nil if it has none. It reads to the end of every
	// result, so that the connection is ready for the next statement.
	QueryRow(ctx context.Context, query string) ([]sqldriver.Value, error)
	// Exec runs a statement without arguments and without a result.
	Exec(ctx context.Context, query string) error
}

// Enforcement names what enforces the statement timeout of a session. It is short and stable: a label for statistics.
type Enforcement string

const (
	// EnforcedBySession: the server limits every statement; the client guard stands behind it.
	EnforcedBySession Enforcement = "session"
	// EnforcedByRole: the server limits every statement, since each session of the role begins so; the client guard stands
	// behind it ([TransactionPooling]).
	EnforcedByRole Enforcement = "role"
	// EnforcedByTransaction: the server limits the statements of transactions, the client guard everything else
	// ([TransactionPooling]).
	EnforcedByTransaction Enforcement = "transaction"
	// EnforcedForSelects: the server limits read-only SELECT, the client guard everything else (MySQL).
	EnforcedForSelects Enforcement = "session-select"
	// EnforcedByClient: the server limits nothing, and the client guard alone holds the limit, if there is one.
	EnforcedByClient Enforcement = "client"
)

// String returns the label.
func (e Enforcement) String() string { return string(e) }

// Applied is what a session was set up to.
type Applied struct {
	// Enforcement says what enforces the statement timeout.
	Enforcement Enforcement
	// StatementTimeout is the server's limit as read back: the tighter of what was asked and what was already set. 0: none.
	StatementTimeout time.Duration
	// Restore are the statements that put a session which a borrower changed back to exactly this. They hold the values
	// that were read back, so that running them again changes nothing. Empty if nothing was set.
	Restore []string
	// Session identifies the session for [Ender.End]. Empty: its statements cannot be ended from another session.
	Session string
	// Transaction are the statements that set a transaction up, to be run at its beginning before the user's own. Under
	// EnforcedByTransaction they put the limit into force, and the trait ServerEnforced holds for what follows them alone.
	Transaction []string
	// Warnings name what was asked for and is not in force, for the log, once. They are the same for every session of a
	// server.
	Warnings []string
}

// Verdict says what a driver's error means for the statement timeout.
type Verdict int

const (
	// NotTimeout: some other error, a lock timeout and a cancellation that says so included.
	NotTimeout Verdict = iota
	// Exceeded: the server ended the statement because of its limit.
	Exceeded
	// ExceededOrCanceled: the server ended the statement because of its limit or because somebody cancelled it, and its
	// answer does not say which (PostgreSQL's text is localised). Which limit has passed decides.
	ExceededOrCanceled
)

// String returns the constant's name.
func (v Verdict) String() string {
	switch v {
	case NotTimeout:
		return "NotTimeout"
	case Exceeded:
		return "Exceeded"
	case ExceededOrCanceled:
		return "ExceededOrCanceled"
	}
	return "Verdict(" + strconv.Itoa(int(v)) + ")"
}

// Traits are what the text of a statement tells about it: bit flags.
type Traits uint8

const (
	// TouchesSettings: the text may change what Setup has set, so that the session must be restored before somebody else
	// borrows it. Wrongly set it costs a round trip; wrongly missing it leaks a setting, so that doubt sets it.
	TouchesSettings Traits = 1 << iota
	// ServerEnforced: the server itself limits this statement where the session has a limit. Doubt leaves it out.
	ServerEnforced
)

// Has reports whether all of the flags are set.
func (t Traits) Has(flags Traits) bool { return t&flags == flags }

// Dialect is what one kind of server needs to enforce a statement timeout. The dialects of this package are comparable
// with ==, hold no state, and may be used by several goroutines at once.
type Dialect interface {
	// Name is the kind of server, lower-case: "postgres", "mariadb", "mysql", "sqlite", "client-only".
	Name() string

	// Setup puts the settings into force for a fresh session, checks that the server took them, and says what holds now. The
	// driver's own error is returned as it came. After an error the session is in an unknown state: close it.
	Setup(ctx context.Context, s Session, want Settings) (Applied, error)

	// Verdict says whether err, or an error that it wraps, is the server's statement timeout. Errors of the client alone
	// (context.DeadlineExceeded, a broken connection) are NotTimeout.
	Verdict(err error) Verdict

	// Inspect reads the traits off the text of a statement. It allocates nothing and takes some 100 ns.
	Inspect(query string) Traits
}
