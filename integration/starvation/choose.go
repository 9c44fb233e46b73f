package starvation

import (
	"os"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/integration/containers"
	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// Postgres is the server that SQLBULKHEAD_POSTGRES_DSN names, to which no fault
// is done; else one in a container, where the environment names an image or the
// default one is here; else a private one. Without any it skips the test.
func Postgres(tb testing.TB) Server {
	tb.Helper()
	return choice{
		kind: containers.Postgres, product: "PostgreSQL", driver: "pgx",
		variable: "SQLBULKHEAD_POSTGRES_DSN", dsn: testserver.Postgres, start: testserver.StartPostgres,
	}.server(tb)
}

// MariaDB is the same with SQLBULKHEAD_MARIADB_DSN.
func MariaDB(tb testing.TB) Server {
	tb.Helper()
	return choice{
		kind: containers.MariaDB, product: "MariaDB", driver: "mysql",
		variable: "SQLBULKHEAD_MARIADB_DSN", dsn: testserver.MariaDB, start: testserver.StartMariaDB,
	}.server(tb)
}

// MySQL is the same with SQLBULKHEAD_MYSQL_DSN, but it is never a private one.
func MySQL(tb testing.TB) Server {
	tb.Helper()
	return choice{
		kind: containers.MySQL, product: "MySQL", driver: "mysql",
		variable: "SQLBULKHEAD_MYSQL_DSN", dsn: testserver.MySQL,
	}.server(tb)
}

// choice is where a server of one kind may come from.
type choice struct {
	kind, product, driver string
	variable              string // holds the DSN of one that is already there
	dsn                   func(testing.TB) string
	start                 func(testing.TB) *testserver.Server // a private one; nil: there is none
}

func (c choice) server(tb testing.TB) Server {
	tb.Helper()
	if os.Getenv(c.variable) != "" {
		return c.given(tb)
	}
	why := containers.Preferred(c.kind)
	if why == nil {
		return contain(tb, c.kind, c.product)
	}
	tb.Logf("not in a container: %v", why)
	if c.start == nil {
		return c.given(tb)
	}
	return private(tb, local{kind: c.kind, name: c.product + " (private)", driver: c.driver, start: c.start})
}

// given skips the test where nothing is.
func (c choice) given(tb testing.TB) Server {
	tb.Helper()
	return given{c.kind, c.product + " (" + c.variable + ")", c.driver, c.dsn(tb)}
}

// given is a server of somebody else's: it suffers nothing from us.
type given struct{ kind, name, driver, dsn string }

func (g given) Kind() string   { return g.kind }
func (g given) Name() string   { return g.name }
func (g given) Driver() string { return g.driver }
func (g given) DSN() string    { return g.dsn }
