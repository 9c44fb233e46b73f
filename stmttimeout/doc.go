// Package stmttimeout limits how long one SQL statement may run, and knows how each database server does it.
//
// # Two layers
//
// A statement timeout is enforced twice, and the server's layer is meant to fire first:
//
//   - The session. A [Dialect] puts the limit into the server's own setting when a physical connection is opened and
//     reads it back. A server that did not take the setting is an error, never silence. The server ends the statement,
//     and the connection stays healthy.
//   - The client guard, a deadline on the call itself: a small grace behind the server for a hung server or network, and
//     exactly at the limit where the server has no setting for that statement. Firing costs the connection.
//
// This package holds what both layers need: the limit that a context carries ([With]), the error that a statement ends
// with ([Error]), and the dialects. The guard itself, and the pools that set a limit up, are elsewhere.
//
// # What each server does
//
//	dialect      setting                unit sent     rounded up to   what it limits
//	Postgres     statement_timeout      milliseconds  1 ms            every statement
//	MariaDB      max_statement_time     seconds       1 µs            every statement
//	MySQL        max_execution_time     milliseconds  1 ms            read-only SELECT, nothing else
//	SQLite       none                                                 (client guard)
//	ClientOnly   none                                                 (client guard)
//
// In all three settings zero means "no limit", so a limit is rounded up and never sent as zero. Where the session already
// has a limit, from the DSN, the role or the server's configuration, the tighter of the two holds.
//
// Behind a pooler that lends its sessions by the transaction the session is somebody else's: see [TransactionPooling].
//
// PostgreSQL's manual ("Client Connection Defaults", statement_timeout) measures from the arrival of a command at the
// server, and each statement of a simple-query text on its own since version 13. MariaDB's manual ("Aborting Statements
// that Exceed a Certain Time to Execute") says that the server looks at the clock at intervals, so that a statement may
// run somewhat longer. MySQL's manual ("Server System Variables", max_execution_time) limits read-only SELECT alone, not
// one inside a stored program, nor one that calls a function with side effects; a MAX_EXECUTION_TIME hint replaces the
// session's value. A bare SELECT SLEEP(n) that MySQL interrupts returns 1 without an error.
//
// # What is not seen
//
// [Dialect.Inspect] reads the text of a statement alone. A stored procedure or function that changes a session setting
// is invisible to it, and so is SQL put together on the server, except in a PostgreSQL DO block.
//
// No driver is imported here. SQLSTATE and MySQL's error number are read structurally, so that wrapped drivers and
// drivers not yet written work too.
package stmttimeout
