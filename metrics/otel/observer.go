package otel

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/dbconv"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

var (
	_ partition.AcquireObserver = (*Observer)(nil)
	_ partition.ReleaseObserver = (*Observer)(nil)
	_ partition.ConnObserver    = (*Observer)(nil)
)

const scope = "github.com/sqlbulkhead/sqlbulkhead/metrics/otel"

// Observer records what happens in the pools of one registry. It is made first and given to [partition.WithObserver];
// [Observer.Watch] then tells it the registry.
type Observer struct {
	meter     metric.Meter
	threshold time.Duration
	producer  *Producer // nil: the SDK keeps the histograms, if there are any

	wait, use, dial metric.Float64Histogram // nil where the SDK does not keep them
	histograms      bool

	pools atomic.Pointer[map[workload.Name]*watched] // nil until Watch; never changed then
}

// Option changes what [NewObserver] makes.
type Option func(*options)

type options struct {
	provider   metric.MeterProvider
	histograms bool
	producer   *Producer
	threshold  time.Duration
}

// WithMeterProvider sets where metrics go. Unset: the global provider, [otel.GetMeterProvider].
func WithMeterProvider(p metric.MeterProvider) Option { return func(o *options) { o.provider = p } }

// WithoutHistograms leaves wait_time, use_time and create_time out. What remains is read when it is exported; the histograms cost
// a call two recordings of the SDK, unless there is a [Producer].
func WithoutHistograms() Option { return func(o *options) { o.histograms = false } }

// WithEventThreshold sets how long an acquire must have waited for an event on its caller's span. Unset: 1ms, which
// an acquire takes that had to queue or to dial. An acquire that was refused is an event however long it took.
func WithEventThreshold(d time.Duration) Option { return func(o *options) { o.threshold = d } }

// NewObserver returns an Observer. An error is the meter provider's.
func NewObserver(opts ...Option) (*Observer, error) {
	c := options{provider: otel.GetMeterProvider(), histograms: true, threshold: time.Millisecond}
	for _, opt := range opts {
		opt(&c)
	}
	o := &Observer{histograms: c.histograms, producer: c.producer, threshold: c.threshold}
	o.meter = c.provider.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	if !o.histograms || o.producer != nil {
		return o, nil
	}
	wait, err1 := dbconv.NewClientConnectionWaitTime(o.meter, metric.WithExplicitBucketBoundaries(waitBounds.seconds...))
	use, err2 := dbconv.NewClientConnectionUseTime(o.meter, metric.WithExplicitBucketBoundaries(useBounds.seconds...))
	dial, err3 := dbconv.NewClientConnectionCreateTime(o.meter, metric.WithExplicitBucketBoundaries(dialBounds.seconds...))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	o.wait, o.use, o.dial = wait.Inst(), use.Inst(), dial.Inst()
	return o, nil
}

// pool is nil before Watch, and for the events of a registry that is not watched.
func (o *Observer) pool(name workload.Name) *watched {
	if pools := o.pools.Load(); pools != nil {
		return (*pools)[name]
	}
	return nil
}

// AcquireDone implements partition.AcquireObserver. An acquire that was refused obtained no connection, and is counted as
// a rejection instead.
func (o *Observer) AcquireDone(ctx context.Context, e partition.AcquireEvent) {
	event := e.Err != nil || e.Waited >= o.threshold
	if o.wait == nil && !event {
		return
	}
	p := o.pool(e.Pool)
	if p == nil {
		return
	}
	if p.wait != nil && e.Err == nil {
		p.wait.record(ctx, e.Waited)
	}
	if event {
		tellSpan(ctx, p, e)
	}
}

// Released implements partition.ReleaseObserver.
func (o *Observer) Released(e partition.ReleaseEvent) {
	if o.use == nil {
		return
	}
	if p := o.pool(e.Pool); p != nil {
		p.use.record(context.Background(), e.Held)
	}
}

// ConnOpened implements partition.ConnObserver. How long a dial took that failed says more of its timeout than of the
// server.
func (o *Observer) ConnOpened(e partition.ConnEvent) {
	if p := o.pool(e.Pool); p != nil && p.dial != nil && e.Err == nil {
		p.dial.record(context.Background(), e.Took)
	}
}

// ConnClosed implements partition.ConnObserver.
func (o *Observer) ConnClosed(partition.ConnEvent) {}
