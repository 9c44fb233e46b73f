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
)

// Producer keeps wait_time, use_time and create_time itself and hands them to a reader of the SDK, for some
// 25 ns of a call; to have the SDK record them costs it some 300. It is made before the reader:
//
//	producer := otel.NewProducer()
//	reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(producer))
//	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
//	observer, err := otel.NewObserver(otel.WithMeterProvider(provider), otel.WithProducer(producer))
//
// Views do not apply to it, its points have no exemplars, no minimum and no maximum, and are cumulative whatever the reader
// prefers: where your backend wants deltas, do without. It serves any number of observers; without a reader that has it,
// the three histograms are exported nowhere.
type Producer struct {
	mu    sync.Mutex // guards pools
	pools []*produced
}

// produced is the histograms of a pool.
type produced struct {
	attributes      attribute.Set
	since           time.Time
	wait, use, dial *histogram
}

// NewProducer returns a Producer that has nothing to hand over yet.
func NewProducer() *Producer { return new(Producer) }

// WithProducer has the histograms kept by p. Unset: by the SDK.
func WithProducer(p *Producer) Option { return func(o *options) { o.producer = p } }

func newProduced(attributes attribute.Set) *produced {
	return &produced{attributes, time.Now(), newHistogram(waitBounds), newHistogram(useBounds), newHistogram(dialBounds)}
}

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
	now := time.Now()
	var metrics []metricdata.Metrics
	for _, h := range []struct {
		described interface {
			Name() string
			Unit() string
			Description() string
		}
		of func(*produced) *histogram
	}{
		{dbconv.ClientConnectionWaitTime{}, func(x *produced) *histogram { return x.wait }},
		{dbconv.ClientConnectionUseTime{}, func(x *produced) *histogram { return x.use }},
		{dbconv.ClientConnectionCreateTime{}, func(x *produced) *histogram { return x.dial }},
	} {
		if points := p.pointsLocked(now, h.of); len(points) > 0 {
			metrics = append(metrics, metricdata.Metrics{
				Name: h.described.Name(), Unit: h.described.Unit(), Description: h.described.Description(),
				Data: metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality},
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

// pointsLocked leaves out who has counted nothing yet, as the SDK does.
func (p *Producer) pointsLocked(now time.Time, of func(*produced) *histogram) (points []metricdata.HistogramDataPoint[float64]) {
	for _, x := range p.pools {
		point := of(x).point()
		point.Attributes, point.StartTime, point.Time = x.attributes, x.since, now
		if point.Count > 0 {
			points = append(points, point)
		}
	}
	return points
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
