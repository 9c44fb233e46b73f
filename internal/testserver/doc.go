// Package testserver gives tests real database servers, and faults on the way
// to them.
//
// [Postgres], [MariaDB] and [MySQL] answer with a DSN: the one in the
// environment variable, else that of a private server which this test process
// starts once, on a free loopback port, from the binaries on the machine, which
// for PostgreSQL are those in SQLBULKHEAD_POSTGRES_BIN if that is set; else they
// skip the test with a line that says how to get one.
//
// [StartPostgres] and [StartMariaDB] start a server for one test alone, which
// may pause, stop, kill and restart it. [StartPgBouncer] puts a pooler of
// transactions before a server. [Proxy] stands between a test and a server
// and delays, hangs or cuts its connections.
//
// A package that uses servers calls [Main] from its TestMain. Servers and
// their directories go away with the process in any case, however it ends.
// No goroutine outlives a call into this package, a Proxy's excepted until
// its test is over, so leak checks need no exceptions.
package testserver
