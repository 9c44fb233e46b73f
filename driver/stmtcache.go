package driver

import (
	"container/list"
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Texts counts the virtual statements of each text, over all virtual connections of a registry. While a text has any,
// physical connections may keep it prepared.
type Texts struct {
	mu    sync.Mutex // guards texts and every refs; a leaf
	texts map[string]*text

	closed atomic.Uint64 // how many texts have lost their last statement so far
}

// NewTexts returns an empty count.
func NewTexts() *Texts { return &Texts{texts: make(map[string]*text)} }

// text is one generation of a statement's text: it begins with a first virtual statement and is dead with the last.
type text struct {
	query string
	refs  int
	dead  atomic.Bool
}

func (t *Texts) acquire(query string) *text {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.texts[query]
	if x == nil {
		x = &text{query: query}
		t.texts[query] = x
	}
	x.refs++
	return x
}

// release gives up one statement of x and reports whether it was the last.
func (t *Texts) release(x *text) (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.refs--
	if x.refs > 0 {
		return false
	}
	delete(t.texts, x.query)
	x.dead.Store(true)
	t.closed.Add(1)
	return true
}

// maxPrepared bounds the statements kept prepared on one physical connection. pgx keeps as many by default; MySQL
// allows 16,382 on a server, over all connections.
const maxPrepared = 512

// prepared is a statement that is really prepared on a physical connection.
type prepared struct {
	text  *text // nil: for one virtual statement alone
	stmt  sqldriver.Stmt
	place *list.Element // in the cache; nil if it is not kept there
	busy  bool          // in use by this checkout: neither shared nor evicted
	own   bool          // who uses it has prepared it in the same checkout
	epoch uint64        // of the cache, when it was prepared
}

// stmtCache is the prepared statements of one physical connection.
type stmtCache struct {
	entries map[*text]*prepared
	busy    int
	epoch   uint64 // how often names may have changed their meaning: see meaning.go
	texts   *Texts
	seen    uint64                 // texts.closed at the last sweep that left nothing
	open    map[*prepared]struct{} // all that were not closed, those that are not kept included
	recent  list.List              // of *prepared, the one used last in front
}

// take returns a statement of text x for one use: the cached one, or if that is in use already (two loops over one
// text, one inside the other) one of its own.
func (p *Physical) take(ctx context.Context, x *text) (*prepared, error) {
	c := &p.stmts
	e := c.entries[x]
	if e == nil || e.busy {
		stmt, err := p.prepare(ctx, x.query)
		if err != nil {
			return nil, err
		}
		fresh := &prepared{text: x, stmt: stmt, epoch: c.epoch}
		c.opened(fresh)
		if e == nil && !p.renamed { // what this borrower has made of the names may not be what it leaves
			c.insert(fresh)
		}
		e = fresh
	}
	if e.place != nil {
		c.recent.MoveToFront(e.place)
	}
	e.busy = true
	c.busy++
	return e, nil
}

// kept returns the statement of text x that somebody who prepares it now may have.
func (c *stmtCache) kept(x *text) *prepared {
	e := c.entries[x]
	if e != nil && e.epoch != c.epoch && !e.busy {
		c.evict(e)
		return nil
	}
	return e
}

func (c *stmtCache) opened(e *prepared) {
	if c.open == nil {
		c.open = make(map[*prepared]struct{})
	}
	c.open[e] = struct{}{}
}

func (c *stmtCache) insert(e *prepared) {
	if c.entries == nil {
		c.entries = make(map[*text]*prepared)
	}
	if len(c.entries) >= maxPrepared && !c.evictOldest() {
		return
	}
	c.entries[e.text] = e
	e.place = c.recent.PushFront(e)
}

func (c *stmtCache) evictOldest() bool {
	for at := c.recent.Back(); at != nil; at = at.Prev() {
		if e := at.Value.(*prepared); !e.busy {
			c.evict(e)
			return true
		}
	}
	return false
}

// evict closes a statement that is not in use. Its error says nothing of the statement that somebody waits for.
func (c *stmtCache) evict(e *prepared) error {
	if e.place != nil {
		c.recent.Remove(e.place)
		delete(c.entries, e.text)
		e.place = nil
	}
	delete(c.open, e)
	return e.stmt.Close()
}

// give ends a use. A statement that failed is not kept: what it was prepared for may have changed (DDL), or it may be
// gone from the server (DEALLOCATE ALL, DISCARD ALL). But the borrower who may have done that has the statement that it
// prepared before, and none that means something else.
func (p *Physical) give(e *prepared, failed bool) {
	c := &p.stmts
	e.busy = false
	c.busy--
	if failed && !(e.own && p.renamed) || e.place == nil || e.text.dead.Load() {
		c.evict(e)
	}
}

// stale reports whether a sweep could find anything.
func (c *stmtCache) stale() bool {
	return len(c.entries) > 0 && c.texts.closed.Load() != c.seen
}

// sweepFor is for how long a sweep goes on to the next statement. Each may be a round trip, all of them at the expense of a
// caller who has closed none, and whose time for an acquire they would use up.
const sweepFor = 2 * time.Millisecond

// sweep closes statements whose text has no virtual statement any more: at least one, if there is one. What it leaves is for
// the next. A driver that panics over a statement costs its connection, not the call of somebody else.
func (c *stmtCache) sweep() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w in Stmt.Close: %v", ErrPanicked, v)
		}
	}()
	closed, until := c.texts.closed.Load(), Now()+sweepFor
	for x, e := range c.entries {
		if !x.dead.Load() || e.busy {
			continue
		}
		if Now() >= until {
			return nil // still stale
		}
		c.evict(e)
	}
	c.seen = closed
	return nil
}

// forget drops all entries without a word to the server: their connection is about to be closed.
func (c *stmtCache) forget() {
	c.entries, c.open = nil, nil
	c.recent.Init()
}
