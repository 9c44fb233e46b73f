// Package starvation stages bad days on a real server, each first through one
// shared pool, which has to be seen to fail, then through partitions of the
// same total size, in which logins must not notice.
//
// [Exercise] runs all of them on one [Server]: [Postgres], [MariaDB] and [MySQL]
// take the one that the environment names, else a container, else a private one,
// and the log says which, and which days are therefore left out. What becomes of
// the logins is written down as JSON and as a page to look at, into the directory
// that SQLBULKHEAD_REPORT_DIR names; without it, where go test -artifacts keeps
// it, or nowhere.
//
// Latencies are compared with those of the same handle a moment before, when
// nothing else ran. On a machine that does other things meanwhile one figure is
// noise: a day on which nothing but the p99, or the time until a pool serves
// again after a fault, is wrong, or for which logins failed or took 30 ms before it
// began, is played up to three times, and one attempt has to hold. On a quiet machine
// a login that fails while its server lives, and on any a session too many and a call
// that outlives its timeouts, are never forgiven.
package starvation
