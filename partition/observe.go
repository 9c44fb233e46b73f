package partition

import (
	"context"
	"math"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/internal/gate"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// In Observe mode a workload's Pool has no connections. It has a wall, which watches, and a carrier, which serves: one
// ordinary Pool for each server, without limits but for its size. In Enforce mode a pool carries itself.

var (
	_ driver.Router = watchedRouter{}
	_ driver.Router = watchedPoolRouter{}
)

// watchedRouter leads every checkout to the carrier of the pool that its context names, and refuses none.
type watchedRouter struct{ router }

// Try implements driver.Router.
func (x watchedRouter) Try(ctx context.Context, last driver.Lender) (*driver.Physical, error) {
	return x.r.watched(ctx).try(last.(*member))
}

// Acquire implements driver.Router.
func (x watchedRouter) Acquire(ctx context.Context) (*driver.Physical, bool, error) {
	return x.r.watched(ctx).acquire()
}

// watchedPoolRouter is poolRouter in Observe mode.
type watchedPoolRouter struct{ poolRouter }

// Try implements driver.Router.
func (x watchedPoolRouter) Try(ctx context.Context, last driver.Lender) (*driver.Physical, error) {
	return x.p.direct(ctx).try(last.(*member))
}

// Acquire implements driver.Router.
func (x watchedPoolRouter) Acquire(ctx context.Context) (*driver.Physical, bool, error) {
	return x.p.direct(ctx).acquire()
}

// watched is the call of a context, whatever its tag.
func (r *Registry) watched(ctx context.Context) call {
	tag := workload.TagOf(ctx)
	c := call{ctx: ctx, tag: tag, untagged: unnamed(tag)}
	if !c.untagged {
		c.user = r.pools[tag.Name]
	}
	if c.user == nil {
		c.unknown = !c.untagged
		c.user = r.watchAs(c.untagged)
	}
	return c
}

// watchAs is the pool that stands for what names none.
func (r *Registry) watchAs(untagged bool) *Pool {
	switch {
	case !untagged && r.fallback != nil:
		return r.fallback
	case r.def != nil:
		return r.def
	}
	return r.sorted[0] // tags are required, and the default is no pool
}

// try lends an idle connection of the carrier, if the workload is not paused.
func (c call) try(last *member) (*driver.Physical, error) {
	if last.pool != c.user.carrier || c.user.paused() {
		return nil, nil
	}
	a := acquire{call: c, pool: last.pool}
	return a.runAtOnce(last)
}

func (c call) acquire() (*driver.Physical, bool, error) {
	p := c.user.carrier
	if c.user.paused() {
		a := &acquire{call: c, pool: p, began: driver.Now(), budget: p.budget()}
		return nil, false, a.refuse(gate.ErrPaused)
	}
	return p.acquire(c)
}

// paused reports whether an operator has paused a workload that is only watched. Nothing else disturbs its gate, but that it
// is closed, as the carrier's then is.
func (p *Pool) paused() bool { return !p.gate.Calm() && p.gate.Stats().Paused }

// observe has carriers serve the pools, and walls watch them.
func (r *Registry) observe() (carriers []*Pool) {
	for _, s := range r.servers {
		c := r.newCarrier(s)
		if c == nil {
			continue
		}
		carriers = append(carriers, c)
		r.logger.Info("observe mode: the workloads share one pool and nothing is enforced; see Registry.Plan",
			"pool", c.name, "max_open_conns", c.limit.Load())
	}
	return carriers
}

// sharedName is the carrier's where it serves several workloads, in logs.
const sharedName workload.Name = "shared"

// newCarrier returns the pool that serves all workloads of a server; nil if there are none.
func (r *Registry) newCarrier(s *server) *Pool {
	on := r.poolsOn(s)
	if len(on) == 0 {
		return nil
	}
	name := sharedName
	if len(on) == 1 {
		name = on[0].name
	}
	c := newPool(r, name, s, r.carrierConfig(s))
	for _, p := range on {
		p.carrier, p.wall = c, newWall(p)
	}
	return c
}

// connsOn is how many connections the pools of a server may have together.
func (r *Registry) connsOn(s *server) (n int) {
	if budget := int(r.budget.Load()); s == r.servers[0] && budget > 0 {
		return budget
	}
	for _, p := range r.poolsOn(s) {
		n += int(p.limit.Load())
	}
	return n
}

func (r *Registry) poolsOn(s *server) (on []*Pool) {
	for _, p := range r.sorted {
		if p.server == s {
			on = append(on, p)
		}
	}
	return on
}

// follow gives the carriers what has changed of their pools.
func (r *Registry) follow() {
	if r.mode == Observe {
		for _, c := range r.carriers {
			c.apply(r.carrierConfig(c.server))
		}
	}
}

// carrierConfig is that of a server's carrier: it has no limits but size.
func (r *Registry) carrierConfig(s *server) PoolConfig {
	on, conns := r.poolsOn(s), r.connsOn(s)
	c := *on[0].config.Load()
	var leakAfter time.Duration
	var leakStacks bool
	for _, p := range on {
		own := p.config.Load()
		if p == r.def {
			c = *own
		}
		leakStacks = leakStacks || own.LeakStacks
		if d := own.LeakAfter; d > 0 && (leakAfter == 0 || d < leakAfter) {
			leakAfter = d
		}
	}
	c.MaxOpenConns, c.MaxIdleConns, c.MaxWaiting = conns, conns, math.MaxInt
	c.AcquireTimeout, c.DialTimeout = forever, forever
	c.StatementTimeout, c.IdleInTransactionTimeout, c.LockTimeout, c.MaxHold = NoTimeout, 0, 0, 0
	c.ReadOnly = false
	c.LeakAfter, c.LeakStacks = leakAfter, leakStacks
	return c
}

// router leads the checkouts of the facade.
func (r *Registry) router() driver.Router {
	if r.mode == Observe {
		return watchedRouter{router{r}}
	}
	return router{r}
}

// router leads the checkouts of the pool's own facade.
func (p *Pool) router() driver.Router {
	if p.registry.mode == Observe {
		return watchedPoolRouter{poolRouter{p}}
	}
	return poolRouter{p}
}
