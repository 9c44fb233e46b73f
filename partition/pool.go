package partition

import (
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/internal/gate"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Pool is the wall around one kind of work: a gate of as many permits as it may have connections, and the connections.
//
// Who holds a permit takes an idle connection or, where there is none, dials one; a connection that is being dialed,
// used or closed has a permit behind it at every moment. So there are never more of them than permits, and the cap is
// hard. (An inner *sql.DB would add nothing to that, and a checkout of it costs more than everything here together:
// BenchmarkInnerDB.)
type Pool struct {
	name     workload.Name
	registry *Registry
	config   atomic.Pointer[PoolConfig] // effective, and never written to: Apply puts another in its place
	gate     *gate.Gate
	limit    atomic.Int64 // MaxOpenConns now: Resize may have changed it since
	// idleLimit is MaxIdleConns now: it follows MaxOpenConns unless it was set smaller.
	idleLimit atomic.Int64
	wall      *wall // nil but in Observe mode
	rates     rates // but for its next, the gate's lock guards it
	carrier   *Pool // whose connections serve the workload: itself, but in Observe mode
	server    *server

	// The gate's lock guards the fields below as well: see gate.Lock.
	idle   []*member // oldest first; the youngest is lent first
	out    []*member // lent or parked: each has a permit; in no order
	closed bool
	reaper *time.Timer   // nil until it was first set
	reapAt time.Duration // when it will look; never if it need not
	holds  tally         // of connections that are out no more
	// members are all connections, those that are on their way to be closed included.
	members map[*member]struct{}
	gone    seen // by those that are closed

	facadeMu  sync.Mutex        // guards facade and connector
	facade    *sql.DB           // DB(); nil until somebody asks
	connector *driver.Connector // of facade

	open     atomic.Int64
	counters counters
	arrived  atomic.Uint64   // callers who found no idle connection at once
	waits    sharedHistogram // of those of them who got one
	warned   sync.Once
	journal  journal

	enforcement atomic.Pointer[stmttimeout.Enforcement] // of the connection opened last; nil before the first
}

func newPool(r *Registry, name workload.Name, s *server, c PoolConfig) *Pool {
	p := &Pool{name: name, registry: r, server: s, reapAt: never, members: make(map[*member]struct{})}
	p.config.Store(&c)
	p.journal.pool = p
	p.gate = gate.New(c.MaxOpenConns, c.MaxWaiting, driver.Now, p.reclaimLocked)
	p.setLimit(c.MaxOpenConns)
	p.carrier = p
	p.rates.begin(driver.Now())
	return p
}

// Name is the pool's workload.
func (p *Pool) Name() workload.Name { return p.name }

// Config returns the pool's effective configuration: defaults filled in, MaxOpenConns as it is now, the DSN's password
// redacted.
func (p *Pool) Config() PoolConfig {
	c := *p.config.Load()
	c.MaxOpenConns = int(p.limit.Load())
	c.MaxIdleConns = int(p.idleLimit.Load())
	c.DSN = redactDSN(c.DSN)
	return c
}

func (p *Pool) setLimit(n int) {
	idle := n
	if c := p.config.Load(); c.MaxIdleConns != c.MaxOpenConns {
		idle = min(c.MaxIdleConns, n)
	}
	p.limit.Store(int64(n))
	p.idleLimit.Store(int64(idle))
}

// DB returns the pool as a *sql.DB: all work through it runs in this pool, whatever the tag, for job workers and for
// libraries that pass no context on. It is the same pointer each time. It lives as long as the registry: its Close
// returns an error and closes nothing but that pointer, in whose place the next call of DB returns a new one.
func (p *Pool) DB() *sql.DB {
	p.facadeMu.Lock()
	defer p.facadeMu.Unlock()
	if p.facade == nil {
		p.facade, p.connector = driver.Open(p.router(), p.registry.texts, int(p.carrier.limit.Load()))
		if p.registry.life.Err() != nil {
			p.facade.Close()
		} else {
			registries.Store(p.facade, p.registry)
		}
	}
	return p.facade
}

// Resize changes MaxOpenConns while the pool is in use. Growing serves waiters at once. Shrinking does not block and
// takes nothing away from anybody: idle connections past the new size are closed, the others as they come back. It is
// refused, and changes nothing, if maxOpenConns is not positive or the pools would exceed the budget, or share a SQLite
// database that each connection has to itself.
func (p *Pool) Resize(maxOpenConns int) error {
	if maxOpenConns < 1 || maxOpenConns > maxPoolConns {
		return fmt.Errorf("partition: pool %q: MaxOpenConns must be positive and at most %d, got %d", string(p.name), maxPoolConns, maxOpenConns)
	}
	r := p.registry
	if r.life.Err() != nil {
		return errClosed()
	}
	r.resizeMu.Lock()
	defer r.resizeMu.Unlock()
	sizes := func(other *Pool) int {
		if other == p {
			return maxOpenConns
		}
		return int(other.limit.Load())
	}
	if err := r.checkBudget(p, sizes); err != nil {
		return err
	}
	if err := r.checkMemory(int(r.budget.Load()), sizes); err != nil {
		return err
	}
	p.resize(maxOpenConns)
	r.connector.KeepIdle(r.totalOpenConns())
	return nil
}

func (p *Pool) resize(maxOpenConns int) {
	limit, idle := p.limit.Load(), p.idleLimit.Load()
	p.setLimit(maxOpenConns)
	p.gate.Resize(maxOpenConns)
	if p.wall != nil {
		p.wall.resized()
	}
	if p.limit.Load() < limit || p.idleLimit.Load() < idle {
		p.trim() // and only then: it takes for surplus what a caller with a permit is about to fetch
	}
	p.facadeMu.Lock()
	defer p.facadeMu.Unlock()
	if p.facade != nil {
		p.connector.KeepIdle(int(p.carrier.limit.Load()))
	}
}

// Pause turns away new acquires, and those that wait, with ErrPaused. What holds a connection goes on.
func (p *Pool) Pause() { p.gate.Pause() }

// Resume ends a Pause.
func (p *Pool) Resume() { p.gate.Resume() }

// close turns away waiters, closes idle connections, and lets those in use be closed as they come back.
func (p *Pool) close() error {
	p.gate.Close()
	p.gate.Lock()
	p.closed = true
	p.reclaimAllLocked()
	idle := p.idle
	p.idle = nil
	if p.reaper != nil {
		p.reaper.Stop()
	}
	p.gate.Unlock()

	var all sync.WaitGroup
	errs := make([]error, len(idle))
	for i, m := range idle {
		all.Go(func() { errs[i] = m.shut(CloseShutdown) })
	}
	all.Wait()
	p.closeFacade()
	p.journal.close()
	return first(errs)
}

// first returns an error as it came: joined to others, or to nothing, it would have another type.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Pool) closeFacade() {
	p.facadeMu.Lock()
	db := p.facade
	p.facadeMu.Unlock()
	if db != nil {
		registries.Delete(db)
		db.Close()
	}
}
