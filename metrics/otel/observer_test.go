package otel_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/otel"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// want fails the test for each of the oltp pool's series that is not as it should be: name, or name/reason,
// name/outcome, or name/state.
func (r *rig) want(expected map[string]float64) {
	r.Helper()
	all := r.collect()
	for key, v := range expected {
		name, which, ok := strings.Cut(key, "/")
		var extra []attribute.KeyValue
		switch {
		case ok && name == "sqlbulkhead.statements_ended":
			extra = append(extra, attribute.String("sqlbulkhead.outcome", which))
		case ok && strings.HasPrefix(name, "sqlbulkhead."):
			extra = append(extra, attribute.String("sqlbulkhead.reason", which))
		case ok:
			extra = append(extra, attribute.String("db.client.connection.state", which))
		}
		if got, there := value(all[name], extra...); !there || got != v {
			r.Errorf("%s = %v (there: %v), want %v", key, got, there, v)
		}
	}
}

func TestInstrumentsFollowThePools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := setup(t, partition.PoolConfig{
			MaxOpenConns: 2, MaxWaiting: 1, AcquireTimeout: 100 * ms, StatementTimeout: 500 * ms})
		r.mustExec(oltp, "ok")
		for range 2 {
			go r.mustExec(oltp, "sleep 300ms")
		}
		synctest.Wait()
		go r.db.ExecContext(oltp, "ok") // waits until it times out
		synctest.Wait()
		r.db.ExecContext(oltp, "ok") // the queue is full
		time.Sleep(50 * ms)
		r.want(map[string]float64{
			"db.client.connection.count/used":       2,
			"db.client.connection.count/idle":       0,
			"db.client.connection.max":              2,
			"db.client.connection.idle.max":         2,
			"db.client.connection.idle.min":         0,
			"db.client.connection.pending_requests": 1,
			"db.client.connection.timeouts":         0,
			"sqlbulkhead.rejections/queue_full":     1,
			"sqlbulkhead.saturated_time":            0.05,
		})
		time.Sleep(time.Minute)
		r.db.ExecContext(oltp, "hang")
		p, _ := r.reg.Pool(workload.OLTP)
		p.Pause()
		r.db.ExecContext(oltp, "ok")
		time.Sleep(time.Second)
		r.want(map[string]float64{
			"db.client.connection.count/used":        0,
			"db.client.connection.pending_requests":  0,
			"db.client.connection.timeouts":          1,
			"db.client.connection.create_time":       2,
			"db.client.connection.wait_time":         4,
			"db.client.connection.use_time":          4,
			"sqlbulkhead.rejections/acquire_timeout": 1,
			"sqlbulkhead.rejections/paused":          1,
			"sqlbulkhead.statement_timeouts":         1,
			"sqlbulkhead.saturated_time":             0.3,
		})
	})
}

func TestStatementCutShortIsEndingUntilItsConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, server := setup(t, partition.PoolConfig{StatementTimeout: 10 * ms})
		server.On(fakedb.CloseConn, fakedb.Delay(time.Second))
		r.db.ExecContext(oltp, "hang")
		synctest.Wait()
		r.want(map[string]float64{
			"sqlbulkhead.statements_ending":        1,
			"sqlbulkhead.statements_ended/unknown": 0,
			"db.client.connection.count/used":      1,
		})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.want(map[string]float64{
			"sqlbulkhead.statements_ending":          0,
			"sqlbulkhead.statements_ended/confirmed": 0,
			"sqlbulkhead.statements_ended/forced":    0,
			"sqlbulkhead.statements_ended/unknown":   1,
			"sqlbulkhead.end_problem":                0,
			"db.client.connection.count/used":        0,
		})
	})
}

func TestConnectionHeldForTooLongIsCountedAsALeakAndWhenTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := setup(t, partition.PoolConfig{LeakAfter: time.Second, MaxHold: time.Minute})
		conn, err := r.db.Conn(oltp)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		time.Sleep(30 * time.Second)
		r.want(map[string]float64{"sqlbulkhead.leaks": 1, "sqlbulkhead.reclaims": 0})
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want(map[string]float64{"sqlbulkhead.leaks": 1, "sqlbulkhead.reclaims": 1})
	})
}

func TestHistogramsAreInSecondsAndTheirBoundsToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := setup(t, partition.PoolConfig{})
		r.mustExec(oltp, "sleep 30ms")
		m := r.collect()["db.client.connection.use_time"]
		data, _ := m.Data.(metricdata.Histogram[float64])
		if m.Unit != "s" || len(data.DataPoints) != 1 || data.DataPoints[0].Sum != 0.03 {
			t.Fatalf("%+v", m)
		}
		p := data.DataPoints[0]
		for i, n := range p.BucketCounts {
			if n == 1 && (p.Bounds[i-1] != 0.025 || p.Bounds[i] != 0.05) {
				t.Errorf("30 ms lie between %v and %v", p.Bounds[i-1], p.Bounds[i])
			}
		}
	})
}

func TestWithoutHistogramsTheRestIsThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := setup(t, partition.PoolConfig{}, otel.WithoutHistograms())
		r.mustExec(oltp, "ok")
		all := r.collect()
		for name, m := range all {
			if _, ok := m.Data.(metricdata.Histogram[float64]); ok {
				t.Errorf("%s is there", name)
			}
		}
		r.want(map[string]float64{"db.client.connection.count/idle": 1})
	})
}

func TestObserverWatchesOneRegistry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		other, _ := setup(t, partition.PoolConfig{})
		r, observer := telemetry(t)
		db := other.db
		if _, err := observer.Watch(other.reg); err != nil {
			t.Fatal(err)
		}
		if _, err := observer.Watch(other.reg); err == nil {
			t.Error("watched twice")
		}
		if err := db.PingContext(oltp); err != nil {
			t.Fatal(err)
		}
		r.want(map[string]float64{"db.client.connection.count/idle": 1})
	})
}

func TestWatchEndsWithItsRegistration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		watched, _ := setup(t, partition.PoolConfig{})
		r, observer := telemetry(t)
		registration, err := observer.Watch(watched.reg)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.collect()) == 0 {
			t.Error("nothing is collected")
		}
		registration.Unregister()
		if n := len(r.collect()); n != 0 {
			t.Errorf("%d metrics are collected still", n)
		}
	})
}

// event is what a caller's span tells.
type event struct {
	name       string
	attributes map[attribute.Key]attribute.Value
}

// events runs f under a span and returns its events.
func (r *rig) events(f func(context.Context)) (events []event) {
	r.Helper()
	ctx, span := r.tracer.Tracer("").Start(oltp, "request")
	f(ctx)
	span.End()
	ended := r.spans.Ended()
	for _, e := range ended[len(ended)-1].Events() {
		one := event{e.Name, make(map[attribute.Key]attribute.Value)}
		for _, a := range e.Attributes {
			one.attributes[a.Key] = a.Value
		}
		events = append(events, one)
	}
	return events
}

func TestSpanTellsOfAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := setup(t, partition.PoolConfig{MaxOpenConns: 1})
		r.mustExec(oltp, "ok")
		if events := r.events(func(ctx context.Context) { r.mustExec(ctx, "sleep 20ms") }); len(events) != 0 {
			t.Errorf("who did not wait was told of: %v", events)
		}
		go r.mustExec(oltp, "sleep 20ms")
		synctest.Wait()
		events := r.events(func(ctx context.Context) { r.mustExec(ctx, "ok") })
		if len(events) != 1 || events[0].name != "sqlbulkhead.acquire.waited" ||
			events[0].attributes["sqlbulkhead.wait_time"].AsFloat64() != 0.02 ||
			events[0].attributes["db.client.connection.pool.name"].AsString() != "orders/oltp" {
			t.Errorf("%v", events)
		}
	})
}

func TestSpanTellsOfARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := setup(t, partition.PoolConfig{MaxOpenConns: 1, MaxWaiting: partition.NoQueue})
		go r.mustExec(oltp, "sleep 20ms")
		synctest.Wait()
		events := r.events(func(ctx context.Context) { r.db.ExecContext(ctx, "ok") })
		time.Sleep(20 * ms)
		if len(events) != 1 || events[0].name != "sqlbulkhead.acquire.refused" ||
			events[0].attributes["sqlbulkhead.reason"].AsString() != "queue_full" ||
			events[0].attributes["sqlbulkhead.in_use"].AsInt64() != 1 {
			t.Errorf("%v", events)
		}
	})
}

func TestSpanTellsOfAFailedDialWithoutItsText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, server := setup(t, partition.PoolConfig{})
		server.On(dial, refuse)
		events := r.events(func(ctx context.Context) { r.db.ExecContext(ctx, "ok") })
		if len(events) != 1 || events[0].attributes["sqlbulkhead.reason"].AsString() != "error" || len(events[0].attributes) != 3 {
			t.Errorf("%v", events)
		}
	})
}

func TestSpanEventThresholdCanBeChosen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := setup(t, partition.PoolConfig{MaxOpenConns: 1}, otel.WithEventThreshold(50*ms))
		r.mustExec(oltp, "ok")
		go r.mustExec(oltp, "sleep 49ms")
		synctest.Wait()
		if events := r.events(func(ctx context.Context) { r.mustExec(ctx, "ok") }); len(events) != 0 {
			t.Errorf("%v", events)
		}
	})
}
