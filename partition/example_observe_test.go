package partition_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// First watch, then enforce what the plan says.
func ExampleRegistry_Plan() {
	options := []partition.Option{partition.WithBudget(20)}

	db, err := partition.Open(driverName, dsn, append(options, partition.WithMode(partition.Observe))...)
	if err != nil {
		log.Fatal(err)
	}
	ctx := workload.With(context.Background(), workload.Reporting)
	for range 200 {
		if _, err := db.ExecContext(ctx, "UPDATE totals SET fresh = true"); err != nil {
			log.Fatal(err)
		}
	}
	reg, _ := partition.RegistryOf(db)
	plan := reg.Plan() // fmt.Println(plan) prints a table
	for _, pool := range plan.Pools {
		fmt.Println(pool.Workload, pool.Evidence.Held, pool.Flags)
	}
	db.Close()

	db, err = partition.Open(driverName, dsn, append(options, partition.WithConfig(plan.Config()))...)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	reg, _ = partition.RegistryOf(db)
	fmt.Println(reg.Mode())
	// Output:
	// admin 0 [never_used]
	// batch 0 [never_used]
	// oltp 0 [never_used]
	// reporting 200 [thin_evidence]
	// enforce
}
