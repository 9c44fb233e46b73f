package prometheus_test

import (
	"fmt"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

func Example() {
	observer := prometheus.NewObserver()
	db, err := partition.OpenDB(fakedb.Null(), partition.WithName("orders"), partition.WithObserver(observer),
		partition.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	registry, _ := partition.RegistryOf(db)
	metrics := prom.NewRegistry() // or prom.DefaultRegisterer
	metrics.MustRegister(prometheus.NewCollector(registry, observer))

	db.Exec("UPDATE accounts SET seen = now()")
	families, _ := metrics.Gather() // in a service: promhttp.Handler
	for _, f := range families {
		if f.GetName() == "sqlbulkhead_hold_seconds" {
			for _, m := range f.GetMetric() {
				fmt.Println(m.GetLabel()[0].GetValue(), m.GetLabel()[1].GetValue(), m.GetHistogram().GetSampleCount())
			}
		}
	}
	// Output:
	// orders admin 0
	// orders batch 0
	// orders oltp 1
	// orders reporting 0
}
