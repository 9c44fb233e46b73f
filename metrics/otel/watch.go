package otel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// watched is a pool with its attributes, which are put together once.
type watched struct {
	pool    *partition.Pool
	name    attribute.KeyValue
	observe []metric.ObserveOption // in the order of the readings

	wait, use recorder  // nil unless the SDK keeps histograms
	dial      recorder  // nil without histograms
	produced  *produced // nil without a producer
}

func (o *Observer) newWatched(r *partition.Registry, p *partition.Pool, readings []reading) *watched {
	name := string(p.Name())
	if r.Name() != "" {
		name = r.Name() + "/" + name
	}
	w := &watched{pool: p, name: semconv.DBClientConnectionPoolName(name)}
	o.record(w)
	for _, reading := range readings {
		set := attribute.NewSet(append([]attribute.KeyValue{w.name}, reading.attributes...)...)
		w.observe = append(w.observe, metric.WithAttributeSet(set))
	}
	return w
}

// record gives a pool its histograms.
func (o *Observer) record(w *watched) {
	set := attribute.NewSet(w.name)
	switch {
	case !o.histograms:
	case o.producer != nil:
		w.produced = &produced{attributes: set, pool: w.pool, dial: newHistogram(dialBounds)}
		w.dial = w.produced.dial
	default:
		options := []metric.RecordOption{metric.WithAttributeSet(set)}
		w.wait, w.use, w.dial = instrument{o.wait, options}, instrument{o.use, options}, instrument{o.dial, options}
	}
}

// Watch has the pools of r exported, from the statistics that they keep anyway, whenever metrics are collected. Call it
// right after Open: what happens before is on no span, and in no histogram that is not kept by the pools. The registration that it returns ends it; that
// is of use where a registry is closed long before the program ends. An Observer watches one registry: a second call is an
// error, as is what the meter provider refuses.
func (o *Observer) Watch(r *partition.Registry) (metric.Registration, error) {
	readings, err := newReadings(o.meter)
	if err != nil {
		return nil, err
	}
	pools, list := make(map[workload.Name]*watched), []*watched(nil)
	for _, p := range r.Pools() {
		w := o.newWatched(r, p, readings)
		pools[p.Name()], list = w, append(list, w)
	}
	if !o.pools.CompareAndSwap(nil, &pools) {
		return nil, errors.New("otel: the observer watches a registry already")
	}
	registered, err := o.meter.RegisterCallback(func(_ context.Context, out metric.Observer) error {
		for _, w := range list {
			w.read(out, readings)
		}
		return nil
	}, instrumentsOf(readings)...)
	if err != nil {
		o.pools.Store(nil) // as if it had not been called
		return nil, err
	}
	return o.produce(registered, list, r), nil
}

// produce has the producer hand over the histograms of the pools until they are watched no more.
func (o *Observer) produce(registered metric.Registration, list []*watched, r *partition.Registry) metric.Registration {
	if o.producer == nil || !o.histograms {
		return registered
	}
	both, since := registration{registered, o.producer, nil}, r.Plan().Since
	for _, w := range list {
		w.produced.since = since
		both.pools = append(both.pools, w.produced)
	}
	o.producer.add(both.pools)
	return both
}

func (w *watched) read(out metric.Observer, readings []reading) {
	s := snapshot{w.pool.Stats(), w.pool.Config()}
	for i, r := range readings {
		if r.count != nil {
			out.ObserveInt64(r.count, r.value(&s), w.observe[i])
		} else {
			out.ObserveFloat64(r.seconds, r.duration(&s).Seconds(), w.observe[i])
		}
	}
}
