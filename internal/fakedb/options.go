package fakedb

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"time"
)

// Option changes what [New] makes.
type Option func(*config)

type config struct {
	ifaces       Interfaces
	killSeenBy   Interfaces
	cancelBreaks bool
	countInput   bool
	logging      bool
	maxConns     int
	version      string
	settings     map[string]string
	limits       []limit
	probe        func(context.Context) any
	check        func(*sqldriver.NamedValue) error
	stmtCheck    func(*sqldriver.NamedValue) error
	converter    func(int) sqldriver.ValueConverter
}

// limit is a session setting that ends a statement.
type limit struct {
	setting string
	unit    time.Duration
	err     error
}

func defaults() config {
	return config{
		ifaces:     usual,
		countInput: true,
		logging:    true,
		settings:   make(map[string]string),
		probe:      func(context.Context) any { return nil },
		check:      acceptMore,
		stmtCheck:  acceptMore,
		converter:  func(int) sqldriver.ValueConverter { return sqldriver.String },
	}
}

// With switches optional interfaces on. New panics for a combination that [ConnShapes], [StmtShapes] or [RowsShapes]
// does not list.
func With(list ...Interfaces) Option {
	return func(c *config) {
		for _, i := range list {
			c.ifaces |= i
		}
	}
}

// Without switches optional interfaces off, as if the driver had never heard of them. New panics for a combination
// that [ConnShapes], [StmtShapes] or [RowsShapes] does not list.
func Without(list ...Interfaces) Option {
	return func(c *config) {
		for _, i := range list {
			c.ifaces &^= i
		}
	}
}

// WithVersion makes the server answer SELECT version(). Without it that is an error, as it is to a server of an
// unknown kind.
func WithVersion(text string) Option { return func(c *config) { c.version = text } }

// WithSetting gives every new session a setting.
func WithSetting(name, value string) Option {
	return func(c *config) { c.settings[fold(name)] = value }
}

// WithTimeoutSetting makes the server keep to a session setting such as statement_timeout: a statement that takes
// longer fails with the error of the command "timeout flavour". A plain number in the setting counts units; "200ms" is
// understood too, 0 is none. The limit holds for Exec and Query, and on within the rows' Next.
func WithTimeoutSetting(name string, unit time.Duration, flavour string) Option {
	err, ok := timeoutErrors[flavour]
	if !ok {
		panic(fmt.Sprintf("fakedb: no timeout error of flavour %q", flavour))
	}
	return func(c *config) { c.limits = append(c.limits, limit{fold(name), unit, err}) }
}

// WithMaxConns makes the server refuse to hold more than n connections, with error 53300. Not positive: no limit.
func WithMaxConns(n int) Option { return func(c *config) { c.maxConns = n } }

// WithProbe looks at the context of every call; what it returns is the Seen of the call's entry in the log.
func WithProbe(probe func(context.Context) any) Option { return func(c *config) { c.probe = probe } }

// WithChecker replaces the CheckNamedValue of connections. The usual one takes uint64, []int64 and map[string]string
// as they are, removes a [Removed], and leaves everything else to database/sql.
func WithChecker(check func(*sqldriver.NamedValue) error) Option {
	return func(c *config) { c.check = check }
}

// WithStmtChecker gives prepared statements a CheckNamedValue of their own.
func WithStmtChecker(check func(*sqldriver.NamedValue) error) Option {
	return func(c *config) { c.ifaces |= StmtNamedValueChecker; c.stmtCheck = check }
}

// WithConverter gives prepared statements a ColumnConverter. With(ColumnConverter) alone makes strings of everything.
func WithConverter(converter func(idx int) sqldriver.ValueConverter) Option {
	return func(c *config) { c.ifaces |= ColumnConverter; c.converter = converter }
}

// WithKillSeenBy says who notices that a connection was killed before a call on it fails: SessionResetter, Validator
// or both. Without it nobody does, as with a driver that learns of a server's restart when it writes.
func WithKillSeenBy(list Interfaces) Option { return func(c *config) { c.killSeenBy = list } }

// WithCancelBreaks makes a statement that its context cuts short break its connection, as in pgx and
// go-sql-driver/mysql. Without it the connection stays good, as in SQLite.
func WithCancelBreaks() Option { return func(c *config) { c.cancelBreaks = true } }

// WithUncountedInput makes NumInput of every prepared statement -1. Otherwise it is the number of placeholders (words
// that start with ? or $) in the text.
func WithUncountedInput() Option { return func(c *config) { c.countInput = false } }

// WithoutLog keeps no log of calls, for tests with so many that memory matters.
func WithoutLog() Option { return func(c *config) { c.logging = false } }

// Removed is an argument that the usual checker removes (driver.ErrRemoveArgument).
type Removed struct{}

// acceptMore takes some types that database/sql alone would refuse.
func acceptMore(nv *sqldriver.NamedValue) error {
	switch nv.Value.(type) {
	case uint64, []int64, map[string]string:
		return nil
	case Removed:
		return sqldriver.ErrRemoveArgument
	default:
		return sqldriver.ErrSkip
	}
}
