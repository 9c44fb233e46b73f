package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Apply changes the configuration of a registry that is in use, to what it would be if it were opened anew with c: with the
// same options, and c in the place of whatever [WithConfig] gave (the first of them, or the end of the options). So a file
// that is watched is the whole truth. What it gave before and gives no longer goes back to what the code says, else to the
// default; and an instance that starts with it has what one has that saw it change. What is to have the last word on the file,
// such as the environment, belongs into c as well: see [Config.Merge]. A size that [Pool.Resize] has set is replaced, too.
//
// It is all or nothing. Sizes, queue bounds, timeouts, lifetimes, session settings, LeakAfter, MaxHold, LeakStacks and the
// budget can change. A DSN, the set of pools, Default, RequireTag, Mode and Pooler cannot: if c changes one of them, or if a value
// is out of range or the sizes exceed the budget, nothing changes, and the error names everything that stood in the way,
// without a DSN's password. After Close it is that of a closed handle.
//
// It takes nothing away from anybody, and does not block:
//
//   - Sizes change as by [Pool.Resize], those that shrink first. Until what is out comes back, a pool that shrank has more
//     connections than its new size, beside those of one that grew.
//   - MaxWaiting and AcquireTimeout hold for callers who come after; who waits already goes on as it began.
//   - Session settings (StatementTimeout, IdleInTransactionTimeout, LockTimeout, ReadOnly) hold from the next borrower on. A
//     tighter one is set on the same connection, for a round trip or two; for a looser one on the server the connection is
//     replaced, as after its lifetime, since only a new session knows what it had of its own.
//   - In [Observe] mode the walls that are watched change, and the shared pool's size with the budget.
//   - DialTimeout holds for the next dial; lifetimes, LeakAfter and MaxHold at once, for what is open or held already as well.
func (r *Registry) Apply(c Config) error {
	if r.life.Err() != nil {
		return errClosed()
	}
	r.resizeMu.Lock()
	defer r.resizeMu.Unlock()
	o := optionsWith(r.opts, &c)
	pools, err := r.check(o)
	if err != nil {
		return err
	}
	r.budget.Store(int64(o.budget))
	// Those that shrink come first, so that the sizes never add up to more than the budget.
	growth := func(p *Pool) int { return pools[p.name].MaxOpenConns - int(p.limit.Load()) }
	for _, p := range slices.SortedStableFunc(slices.Values(r.sorted), func(a, b *Pool) int { return cmp.Compare(growth(a), growth(b)) }) {
		p.apply(pools[p.name])
	}
	r.follow()
	r.connector.KeepIdle(r.totalOpenConns())
	return nil
}

// fixed is what of a configuration cannot change while the registry is open, beside its pools and their servers.
type fixed struct {
	def        workload.Name
	requireTag bool
	mode       Mode
	pooler     string
}

func (o *options) fixed() fixed { return fixed{o.def, o.requireTag, cmp.Or(o.mode, Enforce), o.pooler} }

// changed names what differs.
func (f fixed) changed(now fixed) (names []string) {
	for _, x := range []struct {
		name    string
		differs bool
	}{
		{"Default", f.def != now.def},
		{"RequireTag", f.requireTag != now.requireTag},
		{"Mode", f.mode != now.mode},
		{"Pooler", f.pooler != now.pooler},
	} {
		if x.differs {
			names = append(names, x.name)
		}
	}
	return names
}

// check returns the effective configuration of every pool, or all that is wrong with it.
func (r *Registry) check(o *options) (map[workload.Name]PoolConfig, error) {
	var problems []string
	if names := append(r.fixed.changed(o.fixed()), r.poolsChanged(o.pools)...); len(names) > 0 {
		problems = append(problems, "cannot change while the registry is open: "+strings.Join(names, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(o.pools)) {
		if err := validate(name, o.pools[name]); err != nil {
			problems = append(problems, trimPackage(err).Error())
		}
	}
	pools, err := o.resolve(r.servers[0])
	if err == nil {
		err = r.checkMemory(o.budget, func(p *Pool) int { return pools[p.name].MaxOpenConns })
	}
	if err != nil && !slices.Contains(problems, trimPackage(err).Error()) {
		problems = append(problems, trimPackage(err).Error())
	}
	if len(problems) > 0 {
		return nil, errors.New("partition: Apply: " + strings.Join(problems, "; "))
	}
	return pools, nil
}

// poolsChanged names pools that are new or missing, or would move to another server.
func (r *Registry) poolsChanged(pools map[workload.Name]PoolConfig) (names []string) {
	all := maps.Clone(pools)
	for name := range r.pools {
		all[name] = pools[name]
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p, had := r.pools[name]
		_, has := pools[name]
		label := fmt.Sprintf("pool %.60q", string(name))
		switch {
		case !had:
			names = append(names, label+" (new)")
		case !has:
			names = append(names, label+" (missing)")
		case p.config.Load().DSN != pools[name].DSN:
			names = append(names, label+" DSN")
		}
	}
	return names
}

// checkMemory is what Open checks, were the pools of these sizes.
func (r *Registry) checkMemory(budget int, size func(*Pool) int) error {
	for i, s := range r.servers {
		conns := 0
		for _, p := range r.poolsOn(s) {
			conns += size(p)
		}
		if i == 0 && r.mode == Observe {
			conns = max(conns, budget)
		}
		if err := checkMemory(s, conns); err != nil {
			return err
		}
	}
	return nil
}

// apply puts a configuration in force that was found to be good.
func (p *Pool) apply(c PoolConfig) {
	if *p.config.Load() != c { // else every connection would look itself over for nothing
		p.config.Store(&c)
		p.gate.Bound(c.MaxWaiting)
		p.lookSoon()
	}
	p.resize(c.MaxOpenConns)
}

// lookSoon has the reaper find out anew what is due when.
func (p *Pool) lookSoon() {
	t := driver.Now()
	p.gate.Lock()
	defer p.gate.Unlock()
	if !p.closed {
		p.watchLocked(t, t)
	}
}

// adopt makes a connection that was just lent fit for the configuration that holds now. It is false if that takes a new
// session.
func (m *member) adopt() bool {
	c := m.pool.config.Load()
	return m.config == c || m.change(c)
}

func (m *member) change(c *PoolConfig) bool {
	was, want := m.pool.settings(m.config), m.pool.settings(c)
	if was != want {
		if len(m.applied.Restore) > 0 && !tighter(was, want) {
			return false
		}
		m.outdated = true
		m.phys.SetUpAgain()
	}
	m.config = c
	m.setLimit()
	return true
}

// tighter reports whether a session that was set up to was can be set up to want: a dialect takes the tighter of what it is
// asked for and what the session has.
func tighter(was, want stmttimeout.Settings) bool {
	within := func(was, want time.Duration) bool { return was == 0 || want > 0 && want <= was }
	return within(was.StatementTimeout, want.StatementTimeout) &&
		within(was.IdleInTransactionTimeout, want.IdleInTransactionTimeout) &&
		within(was.LockTimeout, want.LockTimeout) &&
		(want.ReadOnly || !was.ReadOnly)
}

// setUpAgain follows SetUpAgain.
func (m *member) setUpAgain(ctx context.Context) error {
	p := m.pool
	applied, err := p.setUp(ctx, m.dialect, m.phys.Session(), p.settings(m.config))
	if err != nil {
		return err
	}
	p.warn(applied.Warnings)
	p.noteEnforcement(applied)
	m.applied, m.outdated = applied, false
	m.setLimit()
	return nil
}
