package otel_test

import (
	"context"
	"math"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/otel"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

var _ sdkmetric.Producer = (*otel.Producer)(nil)

// producing is a rig whose reader has the producer.
func producing(t *testing.T, producer *otel.Producer, c partition.PoolConfig, opts ...sdkmetric.ManualReaderOption) *rig {
	t.Helper()
	r := &rig{T: t, reader: sdkmetric.NewManualReader(append(opts, sdkmetric.WithProducer(producer))...)}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	observer, err := otel.NewObserver(otel.WithMeterProvider(provider), otel.WithProducer(producer))
	if err != nil {
		t.Fatal(err)
	}
	db, err := partition.OpenDB(fakedb.New().Connector(), partition.WithLogger(quiet), partition.WithName("orders"),
		partition.WithObserver(observer), partition.WithPool(workload.OLTP, c))
	return r.watch(db, err, observer)
}

// kept is a histogram without what a producer does not keep.
func kept(t *testing.T, m metricdata.Metrics) metricdata.Metrics {
	t.Helper()
	data, ok := m.Data.(metricdata.Histogram[float64])
	if !ok || len(data.DataPoints) != 1 {
		t.Fatalf("%+v", m)
	}
	p := &data.DataPoints[0]
	p.Min, p.Max = metricdata.Extrema[float64]{}, metricdata.Extrema[float64]{}
	p.StartTime, p.Exemplars = time.Time{}, nil
	p.Sum = math.Round(p.Sum*1e9) / 1e9 // added up in another order
	return m
}

// deltas is a reader that prefers them.
var deltas = sdkmetric.WithTemporalitySelector(func(sdkmetric.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality })

// bySDK is a rig whose SDK records the histograms for a reader.
func bySDK(t *testing.T, reader *sdkmetric.ManualReader) *rig {
	t.Helper()
	r := &rig{T: t, reader: reader}
	observer, err := otel.NewObserver(otel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	if err != nil {
		t.Fatal(err)
	}
	db, err := partition.OpenDB(fakedb.New().Connector(), partition.WithLogger(quiet), partition.WithName("orders"), partition.WithObserver(observer))
	return r.watch(db, err, observer)
}

func TestProducerCountsFromOneCollectionToTheNextAsTheSDKDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sdk := bySDK(t, sdkmetric.NewManualReader(deltas))
		producer := producing(t, otel.NewProducer(otel.WithDeltas()), partition.PoolConfig{}, deltas)
		for i, texts := range [][]string{{"ok", "sleep 10ms"}, {"sleep 1s"}, {}, {"ok", "ok"}} {
			for _, text := range texts {
				go sdk.mustExec(oltp, text)
				producer.mustExec(oltp, text)
				synctest.Wait()
			}
			want, got := sdk.collect(), producer.collect()
			for _, name := range []string{"wait_time", "use_time", "create_time"} {
				w, there := want["db.client.connection."+name].Data.(metricdata.Histogram[float64])
				g, here := got["db.client.connection."+name].Data.(metricdata.Histogram[float64])
				if there != here || there && i > 0 && w.DataPoints[0].StartTime != g.DataPoints[0].StartTime {
					t.Errorf("%s of %v: %+v, from the SDK %+v", name, texts, g, w)
				}
				if there && !reflect.DeepEqual(kept(t, want["db.client.connection."+name]), kept(t, got["db.client.connection."+name])) {
					t.Errorf("%s of %v: %+v, from the SDK %+v", name, texts, g, w)
				}
			}
			time.Sleep(time.Minute)
		}
	})
}

// The twin is what the SDK records of the same work.
func TestProducerExportsWhatTheSDKWouldHave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := partition.PoolConfig{MaxOpenConns: 1, AcquireTimeout: 30 * ms}
		bySDK, _ := setup(t, c)
		byProducer := producing(t, otel.NewProducer(), c)
		for _, r := range []*rig{bySDK, byProducer} {
			for _, text := range []string{"ok", "sleep 1ms", "sleep 25ms", "sleep 2s"} {
				go r.mustExec(oltp, text) // at a bound, too
				synctest.Wait()
				r.db.ExecContext(oltp, "ok") // waits, and is served or refused
				time.Sleep(3 * time.Second)
			}
		}
		want, got := bySDK.collect(), byProducer.collect()
		for _, name := range []string{"wait_time", "use_time", "create_time"} {
			w, g := kept(t, want["db.client.connection."+name]), kept(t, got["db.client.connection."+name])
			g.Data.(metricdata.Histogram[float64]).DataPoints[0].Time = w.Data.(metricdata.Histogram[float64]).DataPoints[0].Time
			if !reflect.DeepEqual(w, g) {
				t.Errorf("the SDK: %+v\nthe producer: %+v", w, g)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d metrics, with the SDK %d", len(got), len(want))
		}
	})
}

func TestProducerForgetsWhoIsWatchedNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		producer := otel.NewProducer()
		stays := producing(t, producer, partition.PoolConfig{})
		stays.mustExec(oltp, "ok")
		observer, err := otel.NewObserver(otel.WithProducer(producer))
		if err != nil {
			t.Fatal(err)
		}
		db, err := partition.OpenDB(fakedb.New().Connector(), partition.WithLogger(quiet), partition.WithObserver(observer))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		reg, _ := partition.RegistryOf(db)
		registration, err := observer.Watch(reg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("ok"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{2, 1} {
			scopes, err := producer.Produce(context.Background())
			if err != nil || len(scopes) != 1 {
				t.Fatal(scopes, err)
			}
			if data := scopes[0].Metrics[0].Data.(metricdata.Histogram[float64]); len(data.DataPoints) != want {
				t.Errorf("%d pools, want %d: %+v", len(data.DataPoints), want, data)
			}
			registration.Unregister()
		}
	})
}
