package otel_test

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/otel"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

func Example() {
	producer := otel.NewProducer()
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(producer)) // in a service: a periodic one with an exporter
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))

	observer, err := otel.NewObserver(otel.WithMeterProvider(provider), otel.WithProducer(producer))
	if err != nil {
		fmt.Println(err)
		return
	}
	db, err := partition.OpenDB(fakedb.Null(), partition.WithName("orders"), partition.WithObserver(observer),
		partition.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	registry, _ := partition.RegistryOf(db)
	if _, err := observer.Watch(registry); err != nil {
		fmt.Println(err)
		return
	}

	db.Exec("UPDATE accounts SET seen = now()")
	var metrics metricdata.ResourceMetrics
	reader.Collect(context.Background(), &metrics)
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			if held, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "db.client.connection.use_time" {
				name, _ := held.DataPoints[0].Attributes.Value("db.client.connection.pool.name")
				fmt.Println(m.Name, name.AsString(), held.DataPoints[0].Count)
			}
		}
	}
	// Output: db.client.connection.use_time orders/oltp 1
}
