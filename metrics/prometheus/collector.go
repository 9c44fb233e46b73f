package prometheus

import (
	"cmp"
	"math"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

var _ prom.Collector = (*Collector)(nil)

// Collector collects the pools of one registry. A scrape reads each pool's statistics once, under that pool's lock for
// less than a microsecond.
type Collector struct {
	pools []*collected
}

// collected is a pool with what does not change about its series.
type collected struct {
	pool       *partition.Pool
	seen       *observed
	values     []series // in the order of the table of values
	histograms []series // in that of the table of histograms
}

// unnamed is the db_name of a registry without a name, since to Prometheus an empty label is none.
const unnamed = "default"

// NewCollector returns the collector of a registry, to be registered once. The observer is the one that the registry was
// opened with, [partition.WithObserver]. With nil in its place a call costs nothing more, and what only an observer
// counts stays at zero: the histograms, and why connections were closed.
//
// db_name is what [partition.WithName] said, or "default": of several registries without a name the second is refused when
// it is registered.
func NewCollector(r *partition.Registry, o *Observer) *Collector {
	if o == nil {
		o = NewObserver()
	}
	c := &Collector{}
	for _, p := range r.Pools() {
		c.pools = append(c.pools, newCollected(r, p, o))
	}
	return c
}

// newCollected makes both labels constant ones, since client_golang compares how the labels of a name are made: see the
// package's documentation on plain handles.
func newCollected(r *partition.Registry, p *partition.Pool, o *Observer) *collected {
	labels := prom.Labels{"db_name": cmp.Or(r.Name(), unnamed), "pool": string(p.Name())}
	c := &collected{pool: p, seen: o.pool(p.Name())}
	for _, v := range values {
		c.values = append(c.values, newSeries(v.name, v.help, v.label, v.labelValue, labels))
	}
	for _, h := range histograms {
		c.histograms = append(c.histograms, newSeries(h.name, h.help, "", "", labels))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prom.Desc) {
	for _, p := range c.pools {
		for _, s := range p.values {
			ch <- s.desc
		}
		for _, s := range p.histograms {
			ch <- s.desc
		}
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prom.Metric) {
	for _, p := range c.pools {
		p.collect(ch)
	}
}

func (p *collected) collect(ch chan<- prom.Metric) {
	s := p.snapshot()
	samples := make([]sample, len(values)) // at once: one by one they would be most of what a scrape allocates
	for i := range values {
		if v := values[i].read(&s); !math.IsNaN(v) {
			samples[i] = sample{&p.values[i], values[i].kind, v}
			ch <- &samples[i]
		}
	}
	for i := range histograms {
		ch <- distribution{&p.histograms[i], histograms[i].of(p.seen)}
	}
}

func (p *collected) snapshot() snapshot {
	return snapshot{Stats: p.pool.Stats(), config: p.pool.Config(), closed: p.seen.closes()}
}
