package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// capacity is how many connections a server accepts.
type capacity struct {
	max      int
	reserved int    // of max, for administrators
	extra    string // beyond max, for administrators
	present  int    // clients that are connected now, this program's included
}

// ceiling is a limit that holds for an account, or for a database.
type ceiling struct {
	of  string
	max int // 0 or less: none
}

// dbServer is a server, and the pools on it.
type dbServer struct {
	sessions []*session
	capacity capacity
	others   int // clients that are connected now, beside this program
	role     string
	err      error // why the capacity is not known
}

// besidePools is how many connections each data source can have beside its
// pools: one for health checks, and two to end cancelled statements.
const besidePools = 3

// perInstance is how many connections an instance can have in these pools, and
// beside them.
func perInstance(sessions []*session) (pooled, beside int) {
	own, shared := 0, 0
	for _, s := range sessions {
		pooled += s.pool.Config().MaxOpenConns
		if s.own() {
			own++
		} else {
			shared = 1
		}
	}
	return pooled, (own + shared) * besidePools
}

// countOthers takes what this program has open off what the server counted.
func (d *dbServer) countOthers() {
	d.others = d.capacity.present
	for _, s := range d.sessions {
		d.others -= s.pool.Stats().Open
	}
	d.others = max(0, d.others) // a pooler may have fewer than we
}

// judgeServers sorts the pools by server, whatever their DSNs say, and compares
// what they need with what there is.
func (c *checkup) judgeServers(ctx context.Context, f *findings) {
	for _, s := range f.sessions {
		if s.kind.name != "" {
			d := f.serverOf(s)
			d.sessions = append(d.sessions, s)
		}
	}
	for _, d := range f.servers {
		if d.shareBackends(); d.behindPooler() {
			f.note("%s: a pooler stands in between. Its own limits decide on connections, and are not known here. "+
				"If it pools by transaction, a session's settings reach other clients, and what was read back need not hold", d.name())
		}
		first := d.sessions[0]
		d.role = first.kind.role(ctx, first.conn)
		if d.capacity, d.err = first.kind.capacity(ctx, first.conn); d.err != nil {
			f.note("%s: how many connections it accepts is unknown: %v", d.name(), c.explain(d.err))
			continue
		}
		d.countOthers()
		c.judgeCapacity(f, d)
		c.judgeCeilings(ctx, f, d)
	}
}

func (f *findings) serverOf(s *session) *dbServer {
	for _, d := range f.servers {
		if d.sessions[0].server == s.server {
			return d
		}
	}
	d := &dbServer{}
	f.servers = append(f.servers, d)
	return d
}

// name is the server's kind and version, and which pools are on it.
func (d *dbServer) name() string {
	var pools []string
	for _, s := range d.sessions {
		pools = append(pools, string(s.pool.Name()))
	}
	return fmt.Sprintf("%s %s (%s)", d.sessions[0].kind.name, d.sessions[0].version, strings.Join(pools, ", "))
}

func (c *checkup) need(sessions []*session) int {
	pooled, beside := perInstance(sessions)
	return (pooled + beside) * c.instances
}

func (c *checkup) judgeCapacity(f *findings, d *dbServer) {
	need, usable := c.need(d.sessions), d.capacity.max-d.capacity.reserved
	switch {
	case d.behindPooler():
		// Its clients are not the server's.
	case need > usable:
		f.broken("%s: %d connections needed, and the server allows %d", d.name(), need, usable)
	case need > usable-d.others:
		f.note("%s: %d connections needed, and only %d are left beside the %d in use now (by instances of this service too, if any run)",
			d.name(), need, usable-d.others, d.others)
	}
}

// judgeCeilings adds up the pools that share an account or a database.
func (c *checkup) judgeCeilings(ctx context.Context, f *findings, d *dbServer) {
	if d.behindPooler() {
		return
	}
	under := map[ceiling][]*session{}
	for _, s := range d.sessions {
		ceilings, err := s.kind.ceilings(ctx, s.conn)
		if err != nil {
			f.note("pool %q: the limits of its account are unknown: %v", s.pool.Name(), c.explain(err))
		}
		for _, limit := range ceilings {
			under[limit] = append(under[limit], s)
		}
	}
	for _, limit := range slices.SortedFunc(maps.Keys(under), func(a, b ceiling) int { return cmp.Compare(a.of, b.of) }) {
		if need := c.need(under[limit]); limit.max > 0 && need > limit.max {
			f.broken("%s: %d connections needed, and %s may have %d", d.name(), need, limit.of, limit.max)
		}
	}
}

func (d *dbServer) behindPooler() bool {
	return slices.ContainsFunc(d.sessions, func(s *session) bool { return s.pooler == "yes" })
}

// postgresCapacity counts clients, which occupy max_connections, and not the
// server's own processes.
func postgresCapacity(ctx context.Context, conn *sql.Conn) (c capacity, err error) {
	err = conn.QueryRowContext(ctx, `
		SELECT current_setting('max_connections')::int,
		       current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true), '0')::int,
		       (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend')`).
		Scan(&c.max, &c.reserved, &c.present)
	return c, err
}

// postgresCeilings do not hold superusers.
func postgresCeilings(ctx context.Context, conn *sql.Conn) ([]ceiling, error) {
	var role, database ceiling
	var superuser bool
	err := conn.QueryRowContext(ctx, `
		SELECT r.rolname, r.rolconnlimit, r.rolsuper, d.datname, d.datconnlimit
		  FROM pg_roles r, pg_database d
		 WHERE r.rolname = session_user AND d.datname = current_database()`).
		Scan(&role.of, &role.max, &superuser, &database.of, &database.max)
	if err != nil || superuser {
		return nil, err
	}
	role.of, database.of = "the role "+role.of, "the database "+database.of
	return []ceiling{role, database}, nil
}

// mysqlCapacity: one connection beyond max_connections is for an administrator.
func mysqlCapacity(ctx context.Context, conn *sql.Conn) (capacity, error) {
	c := capacity{extra: "1 more for an administrator"}
	if err := conn.QueryRowContext(ctx, "SELECT @@max_connections").Scan(&c.max); err != nil {
		return c, err
	}
	var name string
	err := conn.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_connected'").Scan(&name, &c.present)
	return c, err
}

// mariadbCapacity: there may be more on a port of their own.
func mariadbCapacity(ctx context.Context, conn *sql.Conn) (capacity, error) {
	c, err := mysqlCapacity(ctx, conn)
	if err != nil {
		return c, err
	}
	var port, more int
	err = conn.QueryRowContext(ctx, "SELECT @@extra_port, @@extra_max_connections").Scan(&port, &more)
	if port > 0 {
		c.extra += fmt.Sprintf(", %d on the extra port %d", more, port)
	}
	return c, err
}

// mysqlCeilings: what the session shows is the account's own limit, or else the
// server's for every account.
func mysqlCeilings(ctx context.Context, conn *sql.Conn) ([]ceiling, error) {
	var account ceiling
	if err := conn.QueryRowContext(ctx, "SELECT CURRENT_USER(), @@max_user_connections").Scan(&account.of, &account.max); err != nil {
		return nil, err
	}
	account.of = "the account " + account.of
	return []ceiling{account}, nil
}
