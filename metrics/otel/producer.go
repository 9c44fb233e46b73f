package otel

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/dbconv"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// Producer hands wait_time, use_time and create_time to a reader of the SDK, from the histograms that the pools keep anyway. So
// they cost a call nothing, where to have the SDK record them costs it more than the partition itself. It is made before the
// reader:
//
//	producer := otel.NewProducer()
//	reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(producer))
//	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
//	observer, err := otel.NewObserver(otel.WithMeterProvider(provider), otel.WithProducer(producer))
//
// Its points count from the day that the registry was opened, or with [WithDeltas] from the collection before, whatever the
// reader prefers. Views do not apply to it, and its points have no exemplars, no minimum and no maximum. It serves any number of
// observers; without a reader that has it, the three histograms are exported nowhere.
type Producer struct {
	temporality metricdata.Temporality

	mu    sync.Mutex // guards pools, and what is kept of each from one collection to the next
	pools []*produced
}

// ProducerOption changes what [NewProducer] makes.
type ProducerOption func(*Producer)

// WithDeltas has each point count from the collection before: for a backend that wants deltas, where the reader's temporality
// selector says the same of the SDK's histograms. Such a Producer is for one reader alone.
func WithDeltas() ProducerOption {
	return func(p *Producer) { p.temporality = metricdata.DeltaTemporality }
}

// NewProducer returns a Producer that has nothing to hand over yet.
func NewProducer(opts ...ProducerOption) *Producer {
	p := &Producer{temporality: metricdata.CumulativeTemporality}
	for _, opt := range opts {
		opt(p)
	}
	return p
}

// produced is the histograms of a pool.
type produced struct {
	attributes attribute.Set
	since      time.Time
	pool       *partition.Pool
	dial       *histogram // which no pool keeps
	last       []point    // what they were in the collection before; kept for deltas alone
}

// histograms are what a Producer has of each pool.
var histograms = [...]struct {
	described interface {
		Name() string
		Unit() string
		Description() string
	}
	of func(*produced) point
}{
	{dbconv.ClientConnectionWaitTime{}, func(x *produced) point { return pointOf(x.pool.Waits(), waitBounds) }},
	{dbconv.ClientConnectionUseTime{}, func(x *produced) point { return pointOf(x.pool.Holds(), useBounds) }},
	{dbconv.ClientConnectionCreateTime{}, func(x *produced) point { return x.dial.point() }},
}

// WithProducer has p hand the histograms over. Unset: the SDK records them.
func WithProducer(p *Producer) Option { return func(o *options) { o.producer = p } }

func (p *Producer) add(pools []*produced) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pools = append(p.pools, pools...)
}

func (p *Producer) remove(pools []*produced) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pools = slices.DeleteFunc(p.pools, func(x *produced) bool { return slices.Contains(pools, x) })
}

// Produce implements the SDK's Producer. It returns no error.
func (p *Producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	points, now := make([][]point, len(histograms)), time.Now()
	for _, x := range p.pools {
		p.addLocked(points, x, now)
	}
	var metrics []metricdata.Metrics
	for i, h := range histograms {
		if len(points[i]) > 0 {
			metrics = append(metrics, metricdata.Metrics{
				Name: h.described.Name(), Unit: h.described.Unit(), Description: h.described.Description(),
				Data: metricdata.Histogram[float64]{DataPoints: points[i], Temporality: p.temporality},
			})
		}
	}
	if metrics == nil {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{
		Scope:   instrumentation.Scope{Name: scope, SchemaURL: semconv.SchemaURL},
		Metrics: metrics,
	}}, nil
}

// addLocked adds the points of a pool. It leaves out who has counted nothing, as the SDK does.
func (p *Producer) addLocked(points [][]point, x *produced, now time.Time) {
	var all []point
	for i, h := range histograms {
		one := h.of(x)
		all = append(all, one)
		if x.last != nil {
			one = difference(x.last[i], one)
		}
		one.Attributes, one.StartTime, one.Time = x.attributes, x.since, now
		if one.Count > 0 {
			points[i] = append(points[i], one)
		}
	}
	if p.temporality == metricdata.DeltaTemporality {
		x.last, x.since = all, now
	}
}

// registration is that of an observer with a producer, which has to forget the pools as well.
type registration struct {
	metric.Registration
	producer *Producer
	pools    []*produced
}

func (r registration) Unregister() error {
	r.producer.remove(r.pools)
	return r.Registration.Unregister()
}
