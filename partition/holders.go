package partition

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/driver"
	"github.com/sqlbulkhead/sqlbulkhead/internal/gate"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Holder is who has a connection at a moment.
type Holder struct {
	Pool     workload.Name
	Tag      workload.Name // of the context; empty if it has none. It differs from Pool for untagged work and a fallback
	Age      time.Duration // since it was acquired
	Activity driver.Activity
	LongHeld bool   // see workload.LongHeld
	Stack    string // that acquired it, a line per function; empty unless LeakStacks is set
}

// LimitingFactor is what stood in the way of an acquire. Its text is stable.
type LimitingFactor string

// The factors.
const (
	LimitedByPermits LimitingFactor = "permits" // all were out
	LimitedByEnding  LimitingFactor = "ending"  // some behind statements that are still being ended on the server
	LimitedByDial    LimitingFactor = "dial"    // a permit was there; the server accepted no connection in time
	LimitedByPause   LimitingFactor = "paused"
)

func (p *Pool) limitedBy(e *AcquireError, s gate.Stats) LimitingFactor {
	switch {
	case e.Reason == ReasonPaused:
		return LimitedByPause
	case e.Dialing, s.InUse < s.Limit:
		return LimitedByDial
	case p.counters.ending.Load() > 0:
		return LimitedByEnding
	}
	return LimitedByPermits
}

// maxBlamed is how many holders an error names.
const maxBlamed = 3

// Holders lists who has a connection now, in all pools, the longest first.
func (r *Registry) Holders() []Holder {
	var all []Holder
	for _, p := range r.carriers {
		p.gate.Lock()
		all = append(all, p.holdersLocked(driver.Now(), len(p.out))...)
		p.gate.Unlock()
	}
	slices.SortStableFunc(all, func(a, b Holder) int { return cmp.Compare(b.Age, a.Age) })
	return all
}

// holdersLocked returns the n who have held for longest.
func (p *Pool) holdersLocked(t time.Duration, n int) []Holder {
	longest := make([]Holder, 0, min(n, len(p.out))+1)
	for _, m := range p.out {
		h, since := m.loan.get()
		if h != borrowed || n == 0 || len(longest) == n && t-since <= longest[n-1].Age {
			continue
		}
		at, _ := slices.BinarySearchFunc(longest, t-since, func(h Holder, age time.Duration) int { return cmp.Compare(age, h.Age) })
		longest = slices.Insert(longest, at, m.holder(t-since))
		longest = longest[:min(len(longest), n)]
	}
	return longest
}

func (m *member) holder(age time.Duration) Holder {
	h := Holder{Pool: m.user.Load().name, Age: age, Activity: m.phys.Doing()}
	if tag := m.tag.Load(); tag != nil {
		h.Tag, h.LongHeld = tag.Name, tag.LongHeld
	}
	if stack := m.stack.Load(); stack != nil {
		h.Stack = stackText(*stack)
	}
	return h
}

// nested reports whether a connection is held under tag, since before began, on which no statement runs, while nobody
// else waits under it.
func (r *Registry) nested(tag *workload.Tag, began time.Duration) bool {
	if tag == nil || r.waits.any(tag) {
		return false
	}
	for _, p := range r.carriers {
		if p.holdsFor(tag, began) {
			return true
		}
	}
	return false
}

func (p *Pool) holdsFor(tag *workload.Tag, began time.Duration) bool {
	p.gate.Lock()
	defer p.gate.Unlock()
	return slices.ContainsFunc(p.out, func(m *member) bool {
		h, since := m.loan.get()
		return h == borrowed && since <= began && m.tag.Load() == tag && m.phys.Doing() != driver.Running
	})
}

// waits counts who waits under each tag, to tell one request from a context that many share.
type waits struct {
	mu  sync.Mutex // guards tag; a leaf
	tag map[*workload.Tag]*company
}

type company struct {
	waiting int
	crowd   bool // there was more than one
}

func (w *waits) begin(tag *workload.Tag) {
	if tag == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.tag[tag]
	if c == nil {
		if w.tag == nil {
			w.tag = make(map[*workload.Tag]*company)
		}
		c = new(company)
		w.tag[tag] = c
	}
	c.waiting++
	c.crowd = c.crowd || c.waiting > 1
}

// end reports whether others waited under tag meanwhile.
func (w *waits) end(tag *workload.Tag) bool {
	if tag == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.tag[tag]
	if c.waiting--; c.waiting == 0 {
		delete(w.tag, tag)
	}
	return c.crowd
}

// any reports whether somebody waits under tag now.
func (w *waits) any(tag *workload.Tag) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tag[tag] != nil
}

// callers is the stack of an acquire, from the caller of database/sql on.
func callers() *[]uintptr {
	pcs := make([]uintptr, 32)
	pcs = pcs[:runtime.Callers(3, pcs)]
	return &pcs
}

// below reports whether a function is one of those that every acquire's stack begins with.
func below(function string) bool {
	const ours = "github.com/sqlbulkhead/sqlbulkhead/"
	return strings.HasPrefix(function, "database/sql.") || strings.HasPrefix(function, ours+"partition.") || strings.HasPrefix(function, ours+"driver.")
}

// stackText is a line per function, from the caller of database/sql on.
func stackText(pcs []uintptr) string {
	var b strings.Builder
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		if f.Function != "" && (b.Len() > 0 || !below(f.Function)) {
			b.WriteString(f.Function + "\n")
		}
		if !more {
			return b.String()
		}
	}
}
