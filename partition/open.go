package partition

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Open is sql.Open, with pools: it validates its arguments, dials nothing, and returns a handle to be used by the whole
// program and closed once. Closing it closes every pool.
//
// An error names the option, the value and the bound that it broke. An unparsable data source name is an error here,
// for the drivers that can tell without a server; its text never contains the password.
func Open(driverName, dataSourceName string, opts ...Option) (*sql.DB, error) {
	d, err := lookUp(driverName, dataSourceName)
	if err != nil {
		return nil, err
	}
	main, err := openServer(d, dataSourceName)
	if err != nil {
		return nil, err
	}
	db, err := open(main, newOptions(opts))
	if err != nil {
		main.close()
	}
	return db, err
}

// OpenDB is sql.OpenDB, with pools: for drivers that are configured through a connector (credentials that rotate,
// tracing wrappers); not one of a pgxpool, which lends the same connections to others. If c is an io.Closer it is closed with the
// handle; after an error it is still the caller's.
func OpenDB(c sqldriver.Connector, opts ...Option) (*sql.DB, error) {
	if err := checkConnector(c); err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	return open(&server{connector: c}, newOptions(opts))
}

// checkConnector refuses the connector of a pgxpool. That one's connections go back to it when we close them: its other users
// would find our settings on them, and be ended in our place.
func checkConnector(c sqldriver.Connector) error {
	if c == nil {
		return errors.New("connector is nil")
	}
	v := reflect.Indirect(reflect.ValueOf(c))
	if packageOf(c) != "github.com/jackc/pgx/v5/stdlib" || v.Kind() != reflect.Struct {
		return nil
	}
	if pool := v.FieldByName("pool"); pool.IsValid() && pool.Kind() == reflect.Pointer && !pool.IsNil() {
		return errors.New("connector is a pgxpool's, whose connections others have as well: use stdlib.GetConnector")
	}
	return nil
}

func open(main *server, o *options) (*sql.DB, error) {
	pools, err := o.resolve(main)
	if err != nil {
		return nil, err
	}
	servers, err := openServers(main, o, pools)
	if err != nil {
		return nil, err
	}
	return newRegistry(o, main, servers, pools).facade, nil
}

// openServers returns the server of each pool that has its own. If one fails, those that were opened from a DSN are
// closed again.
func openServers(main *server, o *options, pools map[workload.Name]PoolConfig) (_ map[workload.Name]*server, err error) {
	servers := make(map[workload.Name]*server)
	var given []*server
	opened := make(map[string]*server) // by DSN
	defer func() {
		for _, s := range opened {
			if err != nil {
				s.close()
			}
		}
	}()
	conns := make(map[*server]int)
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		c, s := pools[name], main
		switch {
		case o.connectors[name] != nil:
			s = serverOf(o.connectors[name], &given)
		case c.DSN != "":
			if s = opened[c.DSN]; s == nil {
				if s, err = openServer(main.connector.Driver(), c.DSN); err != nil {
					return nil, fmt.Errorf("partition: pool %q: %w", string(name), trimPackage(err))
				}
				opened[c.DSN] = s
			}
		}
		conns[s] += c.MaxOpenConns
		if s == main {
			continue
		}
		servers[name] = s
		if err := checkMemory(s, conns[s]); err != nil {
			return nil, fmt.Errorf("partition: pool %q: %w", string(name), trimPackage(err))
		}
	}
	if o.mode == Observe {
		conns[main] = max(conns[main], o.budget)
	}
	return servers, checkMemory(main, conns[main])
}

// serverOf returns the server of a connector: the same for pools that were given the same one.
func serverOf(c sqldriver.Connector, given *[]*server) *server {
	for _, s := range *given {
		if sameConnector(c, s.connector) {
			return s
		}
	}
	s := &server{connector: c}
	*given = append(*given, s)
	return s
}

// sameConnector reports whether two connectors are one. Those that cannot be compared are not.
func sameConnector(a, b sqldriver.Connector) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

func trimPackage(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "partition: "))
}

// lookUp returns a registered driver. database/sql hands it out only through an open handle.
func lookUp(driverName, dsn string) (sqldriver.Driver, error) {
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, badDSN(dsn, err)
	}
	defer db.Close()
	return db.Driver(), nil
}

func badDSN(dsn string, err error) error {
	return fmt.Errorf("partition: cannot open data source: %s", redactText(err.Error(), dsn))
}

// openServer makes the connector that database/sql would.
func openServer(d sqldriver.Driver, dsn string) (*server, error) {
	s := &server{dsn: dsn, opened: true}
	dc, ok := d.(sqldriver.DriverContext)
	if !ok {
		s.connector = dsnConnector{dsn, d}
		if err := parseForPQ(d, dsn); err != nil {
			return nil, badDSN(dsn, err)
		}
		return s, nil
	}
	c, err := dc.OpenConnector(dsn)
	if err != nil {
		return nil, badDSN(dsn, err)
	}
	s.connector = c
	if err := parseLazy(c); err != nil {
		s.close()
		return nil, badDSN(dsn, err)
	}
	return s, nil
}

// parseLazy finds out whether pgx can parse its DSN, which it otherwise does only when it dials: a Connect whose
// context has ended parses, and dials nothing.
func parseLazy(c sqldriver.Connector) error {
	if !strings.HasPrefix(packageOf(c.Driver()), "github.com/jackc/pgx/") {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	conn, err := c.Connect(ctx)
	if err == nil {
		conn.Close()
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// packageOf is the path of the package that the type of a driver or a connector is from.
func packageOf(of any) string {
	t := reflect.TypeOf(of)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath()
}

// parseForPQ finds out what lib/pq will not be able to parse, which it says only when it dials.
func parseForPQ(d sqldriver.Driver, dsn string) error {
	if packageOf(d) != "github.com/lib/pq" {
		return nil
	}
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		_, err := url.Parse(dsn)
		return err
	}
	return parseKeywords(dsn)
}

// parseKeywords checks the form keyword=value keyword='value with spaces'.
func parseKeywords(dsn string) error {
	for dsn = strings.TrimLeft(dsn, " \t\r\n"); dsn != ""; dsn = strings.TrimLeft(dsn, " \t\r\n") {
		key, rest, ok := strings.Cut(dsn, "=")
		if key = strings.TrimRight(key, " \t\r\n"); !ok || key == "" || strings.ContainsAny(key, " \t\r\n") {
			return errors.New("a keyword is not followed by =")
		}
		rest, ok = skipValue(strings.TrimLeft(rest, " \t\r\n"))
		if !ok {
			return errors.New("a quoted value has no end")
		}
		dsn = rest
	}
	return nil
}

// skipValue returns what follows a value; it is false if the value's quote is never closed.
func skipValue(text string) (rest string, ok bool) {
	end, from := " \t\r\n", 0
	if strings.HasPrefix(text, "'") {
		end, from = "'", 1
	}
	for i := from; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.IndexByte(end, text[i]) >= 0:
			return text[i+1:], true
		}
	}
	return "", end != "'"
}

// dsnConnector serves a driver that predates connectors.
type dsnConnector struct {
	dsn    string
	driver sqldriver.Driver
}

func (c dsnConnector) Connect(context.Context) (sqldriver.Conn, error) { return c.driver.Open(c.dsn) }
func (c dsnConnector) Driver() sqldriver.Driver                        { return c.driver }

// noServer is the connector of a handle that is never used.
type noServer struct{ sqldriver.Connector }

// checkMemory refuses a SQLite database that every connection would have to itself.
func checkMemory(s *server, conns int) error {
	if !s.opened || conns <= 1 {
		return nil
	}
	if d, _ := stmttimeout.ForDriver(s.connector.Driver()); d != stmttimeout.SQLite() || !privateMemory(s.dsn) {
		return nil
	}
	path, _, _ := strings.Cut(s.dsn, "?") // what follows may be a password
	return fmt.Errorf("partition: SQLite data source %q is a database of its own for each of %d connections: write the name of a file, or file:name?mode=memory&cache=shared with ConnMaxIdleTime and ConnMaxLifetime NoTimeout (shared memory lives as long as a connection does)", path, conns)
}

func privateMemory(dsn string) bool {
	dsn = strings.ToLower(dsn)
	if strings.Contains(dsn, "cache=shared") {
		return false
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(dsn, "file:"), "?")
	return path == "" || path == ":memory:" || strings.Contains(dsn, "mode=memory")
}
