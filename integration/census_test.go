package integration

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	pgxlib "github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	libpq "github.com/lib/pq"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// census counts the connections of each pool on the server.
//
// The server goes on listing a session for a moment after its client has closed the connection, so that its list alone
// would find pools over their cap that never were. What counts is a session that the server lists and whose client has
// not begun to close its socket when the list is here: all that count were open at the moment between the two, together.
type census struct {
	target target
	dsn    string
	admin  *sql.DB

	mu   sync.Mutex // guards open
	open map[string]bool
}

func newCensus(t *testing.T, tg target, dsn string) *census {
	t.Helper()
	admin, err := sql.Open(tg.driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	admin.SetMaxOpenConns(2)
	c := &census{target: tg, dsn: dsn, admin: admin, open: make(map[string]bool)}
	if tg.arg == "?" {
		for name := range soakPools {
			for _, text := range []string{"CREATE USER IF NOT EXISTS %s@'%%'", "GRANT SELECT ON *.* TO %s@'%%'"} {
				if _, err := admin.Exec(fmt.Sprintf(text, soakUser(name))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return c
}

// soakUser is what a pool is told by in the server's list.
func soakUser(name workload.Name) string { return soakPrefix + string(name) }

const soakPrefix = "soak_"

func (c *census) close() { c.admin.Close() }

// connector is one whose sockets the census knows, and which the server can tell by its user or its application_name.
func (c *census) connector(name workload.Name) sqldriver.Connector {
	switch c.target.name {
	case "pgx":
		config, err := pgxlib.ParseConfig(c.dsn)
		if err != nil {
			panic("bug: the server's DSN cannot be parsed")
		}
		config.RuntimeParams["application_name"] = soakUser(name)
		config.DialFunc = c.dial
		return stdlib.GetConnector(*config)
	case "pq":
		config, err := libpq.NewConfig(c.dsn)
		if err != nil {
			panic("bug: the server's DSN cannot be parsed")
		}
		config.ApplicationName = soakUser(name)
		connector, err := libpq.NewConnectorConfig(config)
		if err != nil {
			panic(err)
		}
		connector.Dialer(dialer{c})
		return connector
	}
	config, err := mysql.ParseDSN(c.dsn)
	if err != nil {
		panic("bug: the server's DSN cannot be parsed")
	}
	config.User, config.Passwd = soakUser(name), ""
	config.DialFunc = c.dial
	connector, err := mysql.NewConnector(config)
	if err != nil {
		panic(err)
	}
	return connector
}

func (c *census) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn.LocalAddr().String()] = true
	return &counted{conn.(*net.TCPConn), c}, nil
}

// dialer is dial in the form that lib/pq wants.
type dialer struct{ *census }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.dial(context.Background(), network, address)
}

func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.dial(ctx, network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d.dial(ctx, network, address)
}

// counted is a socket that the census knows. go-sql-driver/mysql looks into it for the file descriptor, which embedding
// keeps.
type counted struct {
	*net.TCPConn
	census *census
}

func (c *counted) Close() error {
	c.census.mu.Lock()
	delete(c.census.open, c.LocalAddr().String())
	c.census.mu.Unlock()
	return c.TCPConn.Close()
}

// openSessions are the pools' sessions on the server whose clients have not begun to close them, the control lane's among them.
func (c *census) openSessions() (map[string]session, error) {
	listed, err := listSessions(c.admin, c.target, soakPrefix)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(listed, func(_ string, s session) bool { return !c.open[s.address] })
	return listed, err
}

// watch looks until stop is called, which returns the most that each pool had in one of the looks.
func (c *census) watch(t *testing.T) (stop func() map[workload.Name]int) {
	ctx, cancel := context.WithCancel(context.Background())
	var looks []map[string]session
	var watching sync.WaitGroup
	watching.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(10 * ms) {
			open, err := c.openSessions()
			if err != nil {
				t.Errorf("census: %v", err)
				return
			}
			looks = append(looks, open)
		}
	})
	return func() map[workload.Name]int {
		cancel()
		watching.Wait()
		return mostOf(looks)
	}
}

func mostOf(looks []map[string]session) map[workload.Name]int {
	most, lane := make(map[workload.Name]int), controls(looks)
	for _, open := range looks {
		n := make(map[workload.Name]int)
		for id, s := range open {
			if !lane[id] {
				n[workload.Name(strings.TrimPrefix(s.name, soakPrefix))]++
			}
		}
		for name := range n {
			most[name] = max(most[name], n[name])
		}
	}
	return most
}

// empty fails the test unless the server has no session of a pool any more.
func (c *census) empty(t *testing.T) {
	t.Helper()
	eventually(t, 20*time.Second, func() string {
		sessions, err := listSessions(c.admin, c.target, soakPrefix)
		maps.DeleteFunc(sessions, func(_ string, s session) bool { return s.control })
		if err != nil || len(sessions) > 0 {
			return fmt.Sprintf("the server still has sessions of %v, %v", sessions, err)
		}
		return ""
	})
}
