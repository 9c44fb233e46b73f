package partition

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

var (
	_ driver.Router = router{}
	_ driver.Router = poolRouter{}
)

// router leads a checkout to the pool that its context names.
type router struct{ r *Registry }

// Try implements driver.Router.
func (x router) Try(ctx context.Context, last driver.Lender) (*driver.Physical, error) {
	m := last.(*member)
	p := m.pool
	tag := workload.TagOf(ctx)
	if tag == nil || tag.Name != p.name {
		if other, err := x.r.poolFor(tag); err != nil || other != p {
			return nil, nil // Connect finds the other pool, or says the error
		}
	}
	a := acquire{call: call{ctx: ctx, tag: tag, user: p, untagged: unnamed(tag)}, pool: p}
	return a.runAtOnce(m)
}

// Acquire implements driver.Router.
func (x router) Acquire(ctx context.Context) (*driver.Physical, bool, error) {
	tag := workload.TagOf(ctx)
	p, err := x.r.poolFor(tag)
	if err != nil {
		return nil, false, err
	}
	return p.acquire(call{ctx: ctx, tag: tag, user: p, untagged: unnamed(tag)})
}

func (x router) Driver() sqldriver.Driver { return x.r.servers[0].connector.Driver() }
func (x router) Notice(n driver.Notice)   { x.r.notice(n) }
func (x router) Close() error             { return x.r.shut() }

// poolRouter leads every checkout to one pool.
type poolRouter struct{ p *Pool }

// Try implements driver.Router.
func (x poolRouter) Try(ctx context.Context, last driver.Lender) (*driver.Physical, error) {
	a := acquire{call: x.p.direct(ctx), pool: x.p}
	return a.runAtOnce(last.(*member))
}

// Acquire implements driver.Router.
func (x poolRouter) Acquire(ctx context.Context) (*driver.Physical, bool, error) {
	return x.p.acquire(x.p.direct(ctx))
}

func (x poolRouter) Driver() sqldriver.Driver { return x.p.server.connector.Driver() }
func (x poolRouter) Notice(n driver.Notice)   { x.p.registry.notice(n) }

// Close refuses to close the pool with one of its handles. database/sql has closed the handle itself by now, so the
// pool forgets it.
func (x poolRouter) Close() error {
	p := x.p
	if p.registry.life.Err() != nil {
		return nil
	}
	p.facadeMu.Lock()
	defer p.facadeMu.Unlock()
	registries.Delete(p.facade)
	p.facade = nil
	return fmt.Errorf("partition: pool %q is not closed: it closes with the *sql.DB that Open returned", string(p.name))
}

func (p *Pool) acquire(c call) (*driver.Physical, bool, error) {
	a := &acquire{call: c, pool: p, began: driver.Now(), budget: p.budget()}
	p.noteRate(a.began)
	p.arrived.Add(1)
	m, fresh, err := a.run()
	if err != nil {
		return nil, false, err
	}
	return m.phys, fresh, nil
}

// unnamed reports whether a tag, nil where the context has none, leaves open which workload it is.
func unnamed(tag *workload.Tag) bool { return tag == nil || !tag.Named }

// poolFor returns the pool of a tag, which is nil where the context has none.
func (r *Registry) poolFor(tag *workload.Tag) (*Pool, error) {
	if unnamed(tag) {
		if r.requireTag {
			return nil, ErrUntagged
		}
		return r.def, nil
	}
	if p := r.pools[tag.Name]; p != nil {
		return p, nil
	}
	if r.fallback != nil {
		return r.fallback, nil
	}
	return nil, fmt.Errorf("%w %.60q (pools: %s)", ErrUnknownWorkload, string(tag.Name), r.names())
}

func (r *Registry) names() string {
	names := make([]string, len(r.sorted))
	for i, p := range r.sorted {
		names[i] = string(p.name)
	}
	return strings.Join(names, ", ")
}

// notice logs a setting of the facade that was undone or means nothing.
func (r *Registry) notice(n driver.Notice) {
	switch n {
	case driver.NoticeCapped:
		r.logger.Warn("SetMaxOpenConns on the *sql.DB was undone: it would queue all workloads together. Size the pools with partition.WithBudget or WithPool")
	case driver.NoticeLifetime:
		r.logger.Warn("SetConnMaxLifetime and SetConnMaxIdleTime on the *sql.DB rotate no physical connection. Set them per pool: partition.PoolConfig")
	}
}

// Raw gives f the driver's own connection behind conn: a *stdlib.Conn with pgx, so that CopyFrom works. f must not
// keep it. An error of f is returned as it is; if it is driver.ErrBadConn the connection is thrown away. Session
// settings of ours that f changes are put back before anybody else gets the connection. A conn of a handle that Open
// did not return works, too.
func Raw(conn *sql.Conn, f func(driverConn any) error) error {
	if conn == nil {
		return errors.New("partition: Raw: conn is nil")
	}
	return conn.Raw(func(c any) error {
		if v, ok := c.(*driver.Conn); ok {
			return v.Raw(f)
		}
		return f(c)
	})
}
