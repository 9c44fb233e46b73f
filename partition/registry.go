package partition

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Registry is the pools behind a handle that Open returned.
type Registry struct {
	name      string
	facade    *sql.DB
	connector *driver.Connector // of the facade
	pools     map[workload.Name]*Pool
	sorted    []*Pool
	carriers  []*Pool   // those that have the connections: sorted, but in Observe mode
	servers   []*server // each once
	texts     *driver.Texts
	observers observers
	logger    *slog.Logger
	later     *slog.Logger // the same, for who cannot wait a moment
	lines     lineQueue    // of both

	def        *Pool // nil if untagged contexts are refused
	fallback   *Pool // nil if unknown tags are refused
	requireTag bool
	budget     atomic.Int64 // 0: none; written under resizeMu

	mode        Mode
	since       time.Time
	sites       sites
	unknownTags atomic.Uint64 // that were served in Observe mode

	waits    waits
	resizeMu sync.Mutex // serialises Resize and Apply, so that two together do not exceed the budget; no lock is held when it is taken
	opts     []Option   // of Open, for Apply
	fixed    fixed

	life     context.Context // ends with Close
	endLife  context.CancelFunc
	shutOnce sync.Once
	shutErr  error
}

// registries finds the registry of a handle. An entry lives until the handle is closed.
var registries sync.Map // *sql.DB → *Registry

// RegistryOf returns the pools behind a handle that Open, OpenDB or Pool.DB returned. It is false for every other
// handle, and for one that is closed.
func RegistryOf(db *sql.DB) (*Registry, bool) {
	r, ok := registries.Load(db)
	if !ok {
		return nil, false
	}
	return r.(*Registry), true
}

func newRegistry(o *options, main *server, own map[workload.Name]*server, configs map[workload.Name]PoolConfig) *Registry {
	r := &Registry{
		name: o.name, texts: driver.NewTexts(), observers: o.observers,
		requireTag: o.requireTag, opts: o.opts, fixed: o.fixed(), mode: cmp.Or(o.mode, Enforce), since: time.Now(),
		pools:   make(map[workload.Name]*Pool),
		servers: []*server{main},
	}
	logger := o.logger
	if r.name != "" {
		logger = logger.With("registry", r.name)
	}
	r.logger = slog.New(lateHandler{logger.Handler(), &r.lines, lineTime})
	r.later = slog.New(lateHandler{logger.Handler(), &r.lines, 0})
	r.budget.Store(int64(o.budget))
	r.life, r.endLife = context.WithCancel(context.Background())
	for name, c := range configs {
		s := cmp.Or(own[name], main)
		if !slices.Contains(r.servers, s) {
			r.servers = append(r.servers, s)
		}
		if o.dialect != nil {
			s.dialect.Store(&o.dialect)
		}
		r.pools[name] = newPool(r, name, s, c)
		r.sorted = append(r.sorted, r.pools[name])
	}
	slices.SortFunc(r.sorted, func(a, b *Pool) int { return cmp.Compare(a.name, b.name) })
	r.def, r.fallback = r.pools[o.def], r.pools[o.fallback]
	r.carriers = r.sorted
	if r.mode == Observe {
		r.carriers = r.observe()
	}
	r.facade, r.connector = driver.Open(r.router(), r.texts, r.totalOpenConns())
	registries.Store(r.facade, r)
	return r
}

// Name returns what WithName gave the registry; empty if it was not used.
func (r *Registry) Name() string { return r.name }

// Pool returns the pool of that name.
func (r *Registry) Pool(name workload.Name) (*Pool, bool) {
	p, ok := r.pools[name]
	return p, ok
}

// Pools returns all pools, sorted by name.
func (r *Registry) Pools() []*Pool { return slices.Clone(r.sorted) }

// Health pings every server, each over one more connection that belongs to no pool: a pool that is full is not a sick
// service, and must not have it taken out of rotation. A ping takes at most 5 seconds; ctx may end it sooner. The errors
// of several servers are joined.
func (r *Registry) Health(ctx context.Context) error {
	return r.each(len(r.servers), func(i int) error { return r.servers[i].ping(ctx) })
}

// Warm has every pool dial, set up and ping one connection, so that the first callers do not wait for that: before the
// service says that it is ready. Only ctx bounds how long it waits for a permit. The errors of several pools are
// joined, each with the pool's name.
func (r *Registry) Warm(ctx context.Context) error {
	if r.life.Err() != nil {
		return errClosed()
	}
	return r.each(len(r.carriers), func(i int) error {
		if err := inTime(ctx, func() error { return r.carriers[i].warm(ctx) }); err != nil {
			return fmt.Errorf("partition: warm pool %q: %w", string(r.carriers[i].name), err)
		}
		return nil
	})
}

func (p *Pool) warm(ctx context.Context) error {
	a := &acquire{call: call{ctx: ctx, user: p}, pool: p, began: driver.Now(), budget: unbounded}
	m, _, err := a.run()
	if err != nil {
		return err
	}
	return m.phys.Check(ctx)
}

// each runs n pieces of work side by side and joins their errors in order.
func (r *Registry) each(n int, work func(int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = work(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Close is the same as closing the *sql.DB: callers that wait are turned away with database/sql's own error, idle
// connections are closed, those in use when they come back. It returns the error of a server's connector that is an
// io.Closer, or else of closing an idle connection, as the driver gave it. A second Close returns nil.
func (r *Registry) Close() error { return r.facade.Close() }

// shut is called by the facade's Close, whoever called that.
func (r *Registry) shut() error {
	r.shutOnce.Do(func() {
		r.endLife()
		registries.Delete(r.facade)
		all := r.sorted
		if r.mode == Observe {
			all = slices.Concat(r.sorted, r.carriers)
		}
		errs := make([]error, len(all))
		r.each(len(all), func(i int) error {
			errs[i] = all[i].close()
			return nil
		})
		r.shutErr = r.each(len(r.servers), func(i int) error { return r.servers[i].close() })
		if r.shutErr == nil { // as in database/sql, where the connector's error replaces those of connections
			r.shutErr = first(errs)
		}
		r.lines.flush(lastLineTime)
	})
	return r.shutErr
}

func (r *Registry) totalOpenConns() (total int) {
	for _, p := range r.carriers {
		total += int(p.limit.Load())
	}
	return total
}

// checkBudget refuses a size that would take the pools of the shared server past the budget.
func (r *Registry) checkBudget(resized *Pool, size func(*Pool) int) error {
	main := r.servers[0]
	budget := int(r.budget.Load())
	if budget == 0 || resized.server != main {
		return nil
	}
	sum := 0
	for _, p := range r.poolsOn(main) {
		sum += size(p)
	}
	if sum > budget {
		return fmt.Errorf("partition: pool %q: MaxOpenConns %d would make %d connections in all, the budget is %d",
			string(resized.name), size(resized), sum, budget)
	}
	return nil
}
