package prometheus

import (
	"cmp"
	"slices"

	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

var _ prom.Collector = (*Collector)(nil)

// Collector collects the pools of one registry, from what these keep anyway. A scrape takes each pool's lock for some
// microseconds.
type Collector struct {
	pools         []watched
	families      []*family
	distributions []*distribution
}

// watched is a pool with what an Observer has seen of it.
type watched struct {
	pool *partition.Pool
	seen *observed
}

// unnamed is the db_name of a registry without a name, since to Prometheus an empty label is none.
const unnamed = "default"

// NewCollector returns the collector of a registry, to be registered once. The observer is the one that the registry was
// opened with, [partition.WithObserver]. With nil in its place what only an observer sees stays at zero: how long dials took,
// and why connections were closed.
//
// db_name is what [partition.WithName] said, or "default": of several registries without a name the second is refused when
// it is registered.
func NewCollector(r *partition.Registry, o *Observer) *Collector {
	if o == nil {
		o = NewObserver()
	}
	c := &Collector{}
	var labels []poolLabels
	for _, p := range r.Pools() {
		c.pools = append(c.pools, watched{p, o.pool(p.Name())})
		labels = append(labels, newPoolLabels(cmp.Or(r.Name(), unnamed), string(p.Name())))
	}
	c.families = newFamilies(labels)
	for _, h := range histograms {
		c.distributions = append(c.distributions, newDistribution(h, o, labels))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prom.Desc) {
	for _, f := range c.families {
		for _, s := range f.series {
			ch <- s.desc
		}
	}
	for _, d := range c.distributions {
		for _, s := range d.series {
			ch <- s.desc
		}
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prom.Metric) {
	snapshots := make([]snapshot, len(c.pools))
	for i, p := range c.pools {
		snapshots[i] = snapshot{p.pool.Stats(), p.pool.Config(), p.seen}
	}
	for _, f := range c.families {
		f.collect(ch, snapshots)
	}
	for _, d := range c.distributions {
		d.collect(ch, c.pools)
	}
}

// poolLabels are the labels that all series of a pool have. They are made once, since a scrape looks at each several times.
type poolLabels struct {
	constant prom.Labels
	pairs    []*dto.LabelPair
}

func newPoolLabels(db, pool string) poolLabels {
	l := poolLabels{constant: prom.Labels{"db_name": db, "pool": pool}}
	l.pairs = slices.Clip(prom.MakeLabelPairs(prom.NewDesc("any", "", nil, l.constant), nil))
	return l
}
