// Package fakedb is a scriptable fake database server and its database/sql driver. Tests use it to cause, one at a time
// and on purpose, the faults that real servers, networks and drivers have; [Null] is its twin for benchmarks.
//
//	s := fakedb.New(fakedb.Without(fakedb.Validator), fakedb.WithVersion("PostgreSQL 15.4"))
//	db := sql.OpenDB(s.Connector())
//	s.On(fakedb.Dial, fakedb.Delay(120*time.Millisecond))
//	_, err := db.ExecContext(ctx, "sleep 400ms")
//	calls, peak, sins := s.Calls(fakedb.Exec), s.Stats().PeakRunning, s.Violations()
//
// Everything that blocks, blocks in a select on a timer, a context or a channel, so that it works in a
// testing/synctest bubble. A call that waits for ever ends when its connection is killed: see [Server.KillAll].
//
// # What a query text may say
//
// A text is one command, or several separated by semicolons that run one after the other; the last one that has rows
// gives the answer. A Query of a command without rows answers one row holding 1. Comments are skipped, so that texts
// which do the same can differ. D is a Go duration, N and K are counts.
//
//	ok ...              does nothing; further words, as placeholders, are ignored
//	affected N          an Exec reports N rows affected (any other command without rows: 1)
//	sleep D             runs for D, or until the context is done
//	hang                runs until the context is done
//	deaf [D]            runs for D (for ever), or until its connection is closed, and does not look at the context
//	orphan D            like sleep, but if the context ends it first, only the driver lets go: the connection is
//	                    broken and the statement goes on running on the server for what is left of D
//	rows N              N rows of one column, 1 to N. Any of these may follow:
//	   sleep D              every row takes D
//	   err K                after K rows Next fails
//	   at K COMMAND         after K rows Next runs this command first: at 2 hang, at 0 timeout. It comes last
//	multi MxN           M result sets of N rows; more than the first need With(RowsNextResultSet)
//	types               one row with a value of each type and a NULL; column types follow the values
//	args ...            a row (ordinal, name, Go type, value) for every argument
//	id                  the connection's ID
//	tx                  "none", or the options of the open transaction
//	set k=v             stores a session setting; also SQL's SET SESSION k TO 'v', and several with commas
//	show k              answers a session setting
//	reset k|all         back to the server's value
//	discard all         reset all, deallocate all
//	deallocate all      the session forgets its prepared statements: to use one is error 26000
//	alter               statements prepared so far, on every connection, fail with error 0A000
//	select version()    the text given by WithVersion; an error without
//	skip                driver.ErrSkip if run directly, so that database/sql prepares; nothing if prepared
//	badconn [wrapped]   driver.ErrBadConn, and the connection is broken
//	error [CODE]        an *Error with this SQLSTATE (XX000)
//	timeout [FLAVOUR]   the error of a statement timeout: PostgreSQL's, or flavour de (PostgreSQL speaking
//	                    German), mysql or mariadb (a *MySQLError)
//	cancel [de]         PostgreSQL's error for a cancel request
//	panic               panics
//
// Anything else is a syntax error, unless a [Handler] answers it. What depends on more than the text is said by hooks:
// see [Server.On].
//
// # What it counts and checks
//
// [Server.Stats] counts as a server would: a connection is open until it was closed or killed, an orphaned statement
// runs until it ends. [Server.Violations] lists what no correct user of a driver does: two calls at a time on one
// connection, use after Close, a second Close, a connection handed back or closed with rows or a transaction open, a
// prepared statement run while rows of it are open. The latter also loses rows, as in SQLite: both row sets then read
// from the one cursor.
package fakedb
