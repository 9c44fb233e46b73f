package libraries

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// server is a driver, a server to run it on, and that server's words for what the tests need.
type server struct {
	name   string
	driver string
	dsn    func(testing.TB) string // of an empty schema of its own

	here    string // SQL: an expression, the text from which homes know the pool
	session string // SQL: the number of the session
}

var (
	postgres = server{
		name: "postgres", driver: "pgx", dsn: postgresSchema,
		here:    "current_setting('application_name')",
		session: "SELECT pg_backend_pid()",
	}
	mariadb = server{
		name: "mariadb", driver: "mysql", dsn: mariadbSchema,
		here:    "CAST(CONNECTION_ID() AS CHAR)",
		session: "SELECT CONNECTION_ID()",
	}
)

// on runs a test on several servers.
func on(t *testing.T, servers []server, test func(t *testing.T, s server)) {
	t.Helper()
	t.Parallel()
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

var schemas atomic.Int64

func postgresSchema(tb testing.TB) string {
	tb.Helper()
	dsn := testserver.Postgres(tb)
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal("cannot parse the server's URL")
	}
	name := newSchema(tb, "pgx", dsn, "DROP SCHEMA %s CASCADE")
	q := u.Query()
	q.Set("search_path", name)
	q.Set("application_name", "libraries")
	u.RawQuery = q.Encode()
	return u.String()
}

func mariadbSchema(tb testing.TB) string {
	tb.Helper()
	dsn := testserver.MariaDB(tb)
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		tb.Fatal("cannot parse the server's DSN")
	}
	c.DBName = newSchema(tb, "mysql", dsn, "DROP SCHEMA %s")
	c.ParseTime = true
	c.MultiStatements = true
	return c.FormatDSN()
}

// newSchema creates a schema with a name of its own, and drops it when the test ends.
func newSchema(tb testing.TB, driver, dsn, drop string) (name string) {
	tb.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	name = fmt.Sprintf("library%d_%d", os.Getpid(), schemas.Add(1))
	if _, err := db.Exec("CREATE SCHEMA " + name); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		defer db.Close()
		if _, err := db.Exec(fmt.Sprintf(drop, name)); err != nil {
			tb.Errorf("drop: %v", err)
		}
	})
	return name
}

// homes finds out which pool a statement ran in, from what the expression here gave.
type homes func(here string) string

// homesOf asks the server: PostgreSQL has the pool's name in application_name, and on MariaDB each of the pools opens its
// connections now and says which sessions they are.
func (s server) homesOf(tb testing.TB, h *handle) homes {
	tb.Helper()
	if s.driver == "pgx" {
		return func(here string) string { return here[strings.LastIndex(here, "/")+1:] }
	}
	sessions := map[string]string{}
	for _, p := range h.reg.Pools() {
		for range p.Config().MaxOpenConns {
			c, err := p.DB().Conn(context.Background())
			if err != nil {
				tb.Fatal(err)
			}
			defer c.Close()
			var session string
			if err := c.QueryRowContext(context.Background(), "SELECT "+s.here).Scan(&session); err != nil {
				tb.Fatal(err)
			}
			sessions[session] = string(p.Name())
		}
	}
	return func(here string) string { return sessions[here] }
}
