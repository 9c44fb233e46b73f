package prometheus

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

var _ partition.ConnObserver = (*Observer)(nil)

// Observer counts what a registry does not: how dials are distributed, and why connections were closed. It is made first,
// given to [partition.WithObserver], and then to [NewCollector]; each registry needs one of its own. It is told of connections,
// not of calls, and costs a call nothing.
type Observer struct {
	wait, hold, dial bounds

	pools atomic.Pointer[map[workload.Name]*observed] // what it points to is never changed, but replaced
	mu    sync.Mutex                                  // held by whoever replaces it
}

// Option changes what [NewObserver] makes.
type Option func(*Observer)

// WithWaitBuckets sets the upper bounds, in seconds, of the buckets of sqlbulkhead_wait_seconds. Unset: from 100µs to 5s.
// The bucket for what is above them all need not be given. Instead of a bound that the pools' own histograms do not have (see
// [partition.Histogram]) the nearest is exported, and its le says which: 0.25 for 0.256.
func WithWaitBuckets(seconds ...float64) Option {
	return func(o *Observer) { o.wait = newBounds(seconds).kept() }
}

// WithHoldBuckets sets those of sqlbulkhead_hold_seconds, in the same way. Unset: from 500µs to 15min.
func WithHoldBuckets(seconds ...float64) Option {
	return func(o *Observer) { o.hold = newBounds(seconds).kept() }
}

// WithDialBuckets sets those of sqlbulkhead_dial_seconds, exactly. Unset: from 1ms to 5s.
func WithDialBuckets(seconds ...float64) Option {
	return func(o *Observer) { o.dial = newBounds(seconds) }
}

// NewObserver returns an Observer that has seen nothing yet.
func NewObserver(opts ...Option) *Observer {
	o := &Observer{wait: newBounds(defaultWait), hold: newBounds(defaultHold), dial: newBounds(defaultDial)}
	o.pools.Store(&map[workload.Name]*observed{})
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// observed is what is seen of one pool.
type observed struct {
	dial *histogram

	mu     sync.Mutex // guards closed; a leaf
	closed map[partition.CloseReason]uint64
}

// pool returns what is seen of a pool, without a lock once it was seen before.
func (o *Observer) pool(name workload.Name) *observed {
	if p := (*o.pools.Load())[name]; p != nil {
		return p
	}
	return o.addPool(name)
}

func (o *Observer) addPool(name workload.Name) *observed {
	o.mu.Lock()
	defer o.mu.Unlock()
	pools := maps.Clone(*o.pools.Load())
	if pools[name] == nil {
		pools[name] = &observed{
			dial: newHistogram(o.dial), closed: make(map[partition.CloseReason]uint64),
		}
		o.pools.Store(&pools)
	}
	return pools[name]
}

// ConnOpened implements partition.ConnObserver. How long a dial took that failed says more of its timeout than of the
// server; failures are counted apart.
func (o *Observer) ConnOpened(e partition.ConnEvent) {
	if e.Err == nil {
		o.pool(e.Pool).dial.observe(e.Took)
	}
}

// ConnClosed implements partition.ConnObserver.
func (o *Observer) ConnClosed(e partition.ConnEvent) {
	p := o.pool(e.Pool)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed[e.Reason]++
}

// closes returns how many connections were closed for a reason.
func (p *observed) closes(reason partition.CloseReason) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed[reason]
}
