package starvation

import (
	"os"
	"runtime"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// Postgres is the server that SQLBULKHEAD_POSTGRES_DSN names, to which no fault
// is done, else a private one. Without either it skips the test.
func Postgres(tb testing.TB) Server {
	tb.Helper()
	const variable = "SQLBULKHEAD_POSTGRES_DSN"
	if os.Getenv(variable) != "" {
		return given{"postgres", "PostgreSQL (" + variable + ")", "pgx", testserver.Postgres(tb)}
	}
	return private(tb, local{kind: "postgres", name: "PostgreSQL (private)", driver: "pgx", start: testserver.StartPostgres})
}

// MariaDB is the same with SQLBULKHEAD_MARIADB_DSN.
func MariaDB(tb testing.TB) Server {
	tb.Helper()
	const variable = "SQLBULKHEAD_MARIADB_DSN"
	if os.Getenv(variable) != "" {
		return given{"mariadb", "MariaDB (" + variable + ")", "mysql", testserver.MariaDB(tb)}
	}
	return private(tb, local{kind: "mariadb", name: "MariaDB (private)", driver: "mysql", start: testserver.StartMariaDB})
}

// MySQL is the server that SQLBULKHEAD_MYSQL_DSN names. Without it it skips the
// test.
func MySQL(tb testing.TB) Server {
	tb.Helper()
	return given{"mysql", "MySQL (SQLBULKHEAD_MYSQL_DSN)", "mysql", testserver.MySQL(tb)}
}

// given is a server of somebody else's: it suffers nothing from us.
type given struct{ kind, name, driver, dsn string }

func (g given) Kind() string   { return g.kind }
func (g given) Name() string   { return g.name }
func (g given) Driver() string { return g.driver }
func (g given) DSN() string    { return g.dsn }

// local is a private server. The network before it is there for the day that it
// goes; on the others it would only cost time.
type local struct {
	kind, name, driver string
	start              func(testing.TB) *testserver.Server

	server *testserver.Server
	proxy  *testserver.Proxy
}

// frozen is a local server that can be paused.
type frozen struct{ local }

var (
	_ networker  = local{}
	_ detourer   = local{}
	_ killer     = local{}
	_ stopper    = local{}
	_ replicator = local{}
	_ pauser     = frozen{}
)

// private starts l. A server is paused on Linux alone.
func private(tb testing.TB, l local) Server {
	tb.Helper()
	l.server = l.start(tb)
	l.proxy = testserver.NewProxy(tb, l.server.Addr())
	if runtime.GOOS == "linux" {
		return frozen{l}
	}
	return l
}

func (l local) Kind() string   { return l.kind }
func (l local) Name() string   { return l.name }
func (l local) Driver() string { return l.driver }
func (l local) DSN() string    { return l.server.DSN }

func (l local) Stop(testing.TB)              { l.server.Stop() }
func (l local) Kill(testing.TB)              { l.server.Kill() }
func (l local) Start(testing.TB)             { l.server.Start() }
func (l frozen) Pause(testing.TB)            { l.server.Pause() }
func (l frozen) Resume(testing.TB)           { l.server.Resume() }
func (l local) Disconnect(testing.TB)        { l.proxy.Hang() }
func (l local) Replica(tb testing.TB) Server { return private(tb, l) }

func (l local) Detour() string { return testserver.WithAddr(l.server.DSN, l.proxy.Addr()) }

// Reconnect resets what hung: a network that was away for seconds has forgotten
// its connections.
func (l local) Reconnect(testing.TB) {
	l.proxy.Cut()
	l.proxy.Resume()
}
