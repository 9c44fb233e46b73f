package partition

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// planHeadroom is what a plan allows for bursts.
const planHeadroom = 1.5

// leastUsed is the least that a pool in use wants: while one connection is replaced, another serves.
const leastUsed = 2

// Plan is what the pools' sizes ought to be, after what was seen. See [Registry.Plan].
type Plan struct {
	Mode     Mode
	Since    time.Time     // when the registry was opened
	Window   time.Duration // how long ago that was
	Headroom float64       // factor for bursts that is in Wants

	// Budget is what the pools of the shared server have together: [WithBudget], or as many as there are now.
	Budget int
	// Untagged is how many borrowings carried no tag (see [Registry.Untagged]); UnknownTags how many, in Observe mode, one
	// that is no pool's: enforcing would have refused these, unless there is a fallback.
	Untagged, UnknownTags uint64

	Pools []PoolPlan // by name

	budgeted bool
}

// PoolPlan is one pool of a Plan.
type PoolPlan struct {
	Workload     workload.Name
	MaxOpenConns int // as it is; in Observe mode that of the wall

	// Wants is the size that the evidence asks for: by Little's law, PeakRate × HoldP99 × headroom, but no more than
	// PeakDemand × headroom; at least 2 for a pool in use; and one more for each connection that is held for far longer than
	// HoldP99 now. 0 for a pool that was never used.
	Wants int
	// Size is what it gets of what there is: MaxOpenConns in [Plan.Config].
	Size int

	Flags    []Flag // in the order of the constants
	Evidence Evidence
}

// Evidence is what was seen of one workload since Open. Where walls are enforced, Waited and what follows is what happened;
// where they are watched, what enforcing would have done, played with the arrivals and hold times that there were. (Who
// would have been turned away ran nevertheless, and its load was on the server.)
type Evidence struct {
	Arrivals uint64        // acquires, with those that were refused, failed or were given up
	Rate     float64       // of them a second, on average
	PeakRate float64       // the most, over 10 s
	Held     uint64        // borrowings that have ended
	HoldP50  time.Duration // at most an eighth too long, as HoldP99
	HoldP99  time.Duration
	// PeakInUse is the most connections at once. In Observe mode those who queued up in the shared pool come out of it at
	// once, so that it may be more than the workload needs.
	PeakInUse int
	// PeakDemand is the most that had a connection or waited for one at once. In Enforce mode it is an estimate: if anybody
	// had to wait, that the queue was full.
	PeakDemand int
	Saturated  time.Duration // how long as many were in use as its pool has, or more

	Waited            uint64 // for a permit, whatever came of it
	RejectedQueueFull uint64
	RejectedTimeout   uint64
	// RejectedUsual is how many of the rejected came while connections were held no longer than usual: the pool was too
	// small for its traffic, and not its statements too slow.
	RejectedUsual uint64
	// StatementTimeouts is, in Observe mode, how many borrowings lasted longer than the pool's StatementTimeout. The statements
	// of a transaction are shorter than that, so it is the most that could have been.
	StatementTimeouts uint64
	CallerGaveUp      uint64 // really, in both modes
}

// evidence is Evidence with the histogram behind it.
type evidence struct {
	Evidence
	holds histogram
}

// Plan says, from what was seen since Open, how large each pool ought to be, why, and what is odd about it. It works in both
// modes; [Observe] is for finding out before anything is enforced.
//
// Where the pools of a server want more together than it may have (the budget, or what they have now), those with the
// shortest holds get what they want first, since a few connections more are nothing to those who hold them for long and
// everything to those who wait behind them; the others get what is left, at least 1 each, and are flagged as squeezed. Where
// something is over it goes to the default pool, where what nobody has classified runs, or, if that is not in use, to the
// one with the shortest holds. On thin evidence a pool in use keeps half of what it has. A pool that was never used gets 1,
// so that it still is there on the day it is needed.
//
// A plan is as good as its evidence: let the window hold the busiest hour of the week. It plans sizes alone; whether a
// server can run as much at once is not its question.
func (r *Registry) Plan() Plan {
	now := driver.Now()
	p := Plan{
		Mode: r.mode, Since: r.since, Window: time.Since(r.since), Headroom: planHeadroom,
		Budget: r.connsOn(r.servers[0]), budgeted: r.budget.Load() > 0,
		Untagged: r.untagged(), UnknownTags: r.unknownTags.Load(),
	}
	for _, pool := range r.sorted {
		p.Pools = append(p.Pools, pool.plan(now, p.Window))
	}
	for _, s := range r.servers {
		r.fit(s, p.Pools, p.Window)
	}
	for i := range p.Pools {
		p.Pools[i].flag(p.Window)
	}
	return p
}

// Config returns the plan as a configuration to be enforced: lay it, with [WithConfig], over the options that the registry
// was opened with. It sets the sizes, the budget if there was one, and the mode.
func (p Plan) Config() Config {
	c := Config{Pools: make(map[workload.Name]PoolConfig, len(p.Pools)), Mode: Enforce}
	for _, pool := range p.Pools {
		c.Pools[pool.Workload] = PoolConfig{MaxOpenConns: pool.Size}
	}
	if p.budgeted {
		c.Budget = p.Budget
	}
	return c
}

// plan is everything but what the pools have to share.
func (p *Pool) plan(now, window time.Duration) PoolPlan {
	var e evidence
	if p.wall != nil {
		e = p.wall.evidence(now)
	} else {
		e = p.evidence(now)
	}
	e.Rate = float64(e.Arrivals) / max(window, time.Second).Seconds()
	e.Held, e.HoldP50, e.HoldP99 = e.holds.count(), e.holds.quantile(0.5), e.holds.quantile(0.99)
	plan := PoolPlan{Workload: p.name, MaxOpenConns: int(p.limit.Load()), Evidence: e.Evidence}
	if plan.used() {
		long := p.carrier.overdue(p, max(2*e.HoldP99, time.Second))
		plan.Wants = min(max(e.need(), leastUsed)+long, maxPoolConns)
	}
	return plan
}

// need is how many connections the workload has a use for at its peak. A rate is one of seconds: of those who come in a burst
// and hold for an hour it says too much, and of those who are turned away and come again, too. Where none has given its
// connection back yet, nothing is known but how many there are.
func (e *Evidence) need() int {
	if e.Held == 0 {
		return e.PeakInUse
	}
	return min(Size(e.PeakRate, e.HoldP99, planHeadroom), int(math.Ceil(float64(e.PeakDemand)*planHeadroom)))
}

func (p *PoolPlan) used() bool { return p.Evidence.Arrivals > 0 }

// evidence is what an enforced pool has seen.
func (p *Pool) evidence(now time.Duration) evidence {
	s := p.stats()
	holds, _ := p.holdsOf()
	e := evidence{Evidence: Evidence{
		PeakInUse: s.PeakInUse, PeakDemand: s.PeakInUse, Saturated: s.SaturatedTime, Waited: s.Waited, RejectedQueueFull: s.RejectedQueueFull,
		RejectedTimeout: s.RejectedTimeout, RejectedUsual: p.counters.usual.Load(),
		StatementTimeouts: s.StatementTimeouts, CallerGaveUp: s.CallerGaveUp,
	}, holds: holds}
	if e.Waited+e.RejectedQueueFull+e.RejectedTimeout > 0 {
		e.PeakDemand += s.MaxWaiting
	}
	p.gate.Lock()
	defer p.gate.Unlock()
	e.Arrivals = p.arrivalsLocked()
	e.PeakRate = p.rates.peakLocked(now, e.Arrivals)
	return e
}

// arrivalsLocked is how many have come. Warm is nobody: a pool that was only warmed is not in use.
func (p *Pool) arrivalsLocked() uint64 {
	n := p.arrived.Load() + p.gone.atOnce
	for m := range p.members {
		n += m.atOnce.Load()
	}
	return n
}

// noteRate is called for who comes at t, before he is counted. It ends the span of the pool's rate, if it is over.
func (p *Pool) noteRate(t time.Duration) {
	if !p.rates.due(t) {
		return
	}
	p.gate.Lock()
	defer p.gate.Unlock()
	p.rates.noteLocked(t, p.arrivalsLocked())
}

// usualLocked reports whether connections are held for no longer than usual, where they are expected to be held for hold.
func (p *Pool) usualLocked(hold time.Duration) bool {
	return p.holds.ended > 0 && hold <= 2*p.holds.total/time.Duration(p.holds.ended)
}

// fit shares what a server may have among its pools.
func (r *Registry) fit(s *server, plans []PoolPlan, window time.Duration) {
	var all, used []*PoolPlan
	left := r.connsOn(s)
	for i := range plans {
		if p := &plans[i]; r.pools[p.Workload].server == s {
			p.Size = p.least(window)
			left -= p.Size
			all = append(all, p)
			if p.used() {
				used = append(used, p)
			}
		}
	}
	if len(used) == 0 {
		for _, p := range all {
			p.Size = p.MaxOpenConns
		}
		return
	}
	slices.SortStableFunc(used, func(a, b *PoolPlan) int { return cmp.Compare(a.patience(), b.patience()) })
	for _, p := range used {
		more := max(min(p.Wants-p.Size, left), 0)
		p.Size += more
		left -= more
	}
	spare := used[0]
	if i := slices.IndexFunc(used, func(p *PoolPlan) bool { return r.pools[p.Workload] == r.def }); i >= 0 {
		spare = used[i]
	}
	spare.Size += left
}

// least is what a pool keeps in any case.
func (p *PoolPlan) least(window time.Duration) int {
	if p.used() && p.thin(window) {
		return max(p.MaxOpenConns/2, 1)
	}
	return 1
}

// patience is how little a connection more or less means to the workload. One that has not given back any yet has most.
func (p *PoolPlan) patience() time.Duration {
	if p.Evidence.Held == 0 {
		return never
	}
	return p.Evidence.HoldP99
}
