package partition

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
)

// CallSite is a place in the program whose work carried no workload tag.
type CallSite struct {
	// Site is the function, file and line that used the *sql.DB: the first frame that is neither database/sql's nor this
	// module's nor, as far as they are known, of a query library (GORM, sqlx, bun, ent, …). Of generated code it is that.
	Site string
	// Stack is one of the stacks that were seen there, a line per function.
	Stack string
	// Count is how often a connection was borrowed there. Where many were short it is an estimate: of those that were held for
	// less than 10 ms one in 1021 is looked at, after the first eight of each connection.
	Count uint64
	// HoldP50 and HoldP99 are how long it was held, at most an eighth too long; HoldTime is that of all together, estimated
	// as Count is.
	HoldP50, HoldP99, HoldTime time.Duration
}

const (
	// longHold is from how long on every borrowing is looked at: the stack costs some microseconds, which is then nothing.
	longHold = 10 * time.Millisecond
	// sampleEvery is the share of the others; a prime, so that callers who take turns are all met.
	sampleEvery = 1021
	firstSeen   = 8
)

const (
	maxSites     = 256
	maxStacks    = 1024
	maxStackSize = 40
)

const (
	// othersSite is where those are counted for which there is no room.
	othersSite = "(other places)"
	// reclaimedSite is where those are counted that nobody gave back, and of which no other stack is known.
	reclaimedSite = "(taken back by MaxHold or Drain; LeakStacks would tell from whom)"
)

// noStack leads to reclaimedSite.
var noStack []uintptr

// sites are the places that untagged work came from.
type sites struct {
	mu     sync.Mutex // guards the rest; nothing is called under it that takes another lock
	stacks map[[maxStackSize]uintptr]*site
	sites  map[string]*site
}

type site struct {
	name, stack string
	total       time.Duration
	holds       histogram
}

// Untagged lists where work came from that carried no tag, whoever held connections for longest in all first: what has to
// be tagged, or what takes the pool of untagged work from everybody else there. It knows borrowings that have ended, by the
// stack that gave the connection back (with LeakStacks, that acquired it), of both modes; work through [Pool.DB] needs no
// tag. There are at most 256 places, "(other places)", and one for connections that were taken back without LeakStacks.
func (r *Registry) Untagged() []CallSite {
	r.sites.mu.Lock()
	defer r.sites.mu.Unlock()
	var all []CallSite
	for _, s := range r.sites.sites {
		all = append(all, CallSite{s.name, s.stack, s.holds.count(), s.holds.quantile(0.5), s.holds.quantile(0.99), s.total})
	}
	slices.SortFunc(all, func(a, b CallSite) int {
		return cmp.Or(cmp.Compare(b.HoldTime, a.HoldTime), cmp.Compare(a.Site, b.Site))
	})
	return all
}

// noteUntagged looks at a borrowing without a tag that has ended, if it is one to look at. A stack that is nil is this one's.
func (m *member) noteUntagged(held time.Duration, stack *[]uintptr) {
	n := m.untaggedCalls.Load() + 1
	m.untaggedCalls.Store(n)
	switch {
	case held >= longHold, n <= firstSeen:
		m.pool.registry.sites.add(stack, held, 1)
	case n%sampleEvery == 0:
		m.pool.registry.sites.add(stack, held, sampleEvery)
	}
}

func (x *sites) add(stack *[]uintptr, held time.Duration, weight uint64) {
	var pcs [maxStackSize]uintptr
	if stack != nil {
		copy(pcs[:], *stack)
	} else {
		runtime.Callers(4, pcs[:]) // from who ended the hold
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.ofLocked(&pcs)
	s.holds.add(held, weight)
	s.total += held * time.Duration(weight)
}

func (x *sites) ofLocked(pcs *[maxStackSize]uintptr) *site {
	if s := x.stacks[*pcs]; s != nil {
		return s
	}
	name := siteOf(pcs[:])
	s := x.sites[name]
	if s == nil && len(x.sites) >= maxSites {
		name = othersSite
		s = x.sites[name]
	}
	if s == nil {
		s = &site{name: name}
		if name != othersSite {
			s.stack = stackText(trimZeros(pcs[:]))
		}
		if x.sites == nil {
			x.sites, x.stacks = make(map[string]*site), make(map[[maxStackSize]uintptr]*site)
		}
		x.sites[name] = s
	}
	if len(x.stacks) < maxStacks {
		x.stacks[*pcs] = s
	}
	return s
}

func trimZeros(pcs []uintptr) []uintptr {
	if end := slices.Index(pcs, 0); end >= 0 {
		return pcs[:end]
	}
	return pcs
}

// siteOf is the place in the program. A connection that database/sql gives back by itself, when the context of a
// transaction ends, has none.
func siteOf(pcs []uintptr) string {
	if pcs[0] == 0 {
		return reclaimedSite
	}
	first := ""
	frames := runtime.CallersFrames(trimZeros(pcs))
	for {
		f, more := frames.Next()
		if f.Function != "" && !below(f.Function) && !strings.HasPrefix(f.Function, "runtime.") {
			at := fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line)
			if !ofLibrary(f.Function) {
				return at
			}
			first = cmp.Or(first, at)
		}
		if !more {
			return cmp.Or(first, "(given back by database/sql, when a context ended)")
		}
	}
}

// libraries are how the functions of well-known query libraries begin.
var libraries = []string{
	"gorm.io/", "github.com/jinzhu/gorm", "github.com/jmoiron/sqlx", "github.com/uptrace/bun", "github.com/go-pg/pg",
	"entgo.io/ent/", "github.com/facebook/ent/", "xorm.io/", "github.com/volatiletech/sqlboiler", "github.com/aarondl/sqlboiler",
	"github.com/stephenafamo/bob", "github.com/stephenafamo/scan", "github.com/go-jet/jet", "github.com/Masterminds/squirrel",
	"github.com/doug-martin/goqu", "github.com/georgysavva/scany", "github.com/upper/db", "github.com/gocraft/dbr",
	"github.com/mailru/dbr", "github.com/go-gorp/gorp", "github.com/go-rel/", "github.com/huandu/go-sqlbuilder",
	"github.com/pressly/goose", "github.com/golang-migrate/migrate", "github.com/riverqueue/river",
	"github.com/XSAM/otelsql", "github.com/uptrace/opentelemetry-go-extra",
}

func ofLibrary(function string) bool {
	return slices.ContainsFunc(libraries, func(l string) bool { return strings.HasPrefix(function, l) })
}

// untagged is how many borrowings without a tag have ended.
func (r *Registry) untagged() (n uint64) {
	for _, p := range r.carriers {
		p.gate.Lock()
		n += p.gone.untagged
		for m := range p.members {
			n += m.untaggedCalls.Load()
		}
		p.gate.Unlock()
	}
	return n
}

// overdue is how many of the user's connections have now been held for more than d.
func (p *Pool) overdue(user *Pool, d time.Duration) (n int) {
	t := driver.Now()
	p.gate.Lock()
	defer p.gate.Unlock()
	for _, m := range p.out {
		if h, since := m.loan.get(); h == borrowed && t-since > d && m.user.Load() == user {
			n++
		}
	}
	return n
}
