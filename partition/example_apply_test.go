package partition_test

import (
	"fmt"
	"strings"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Change sizes and timeouts while the service runs: what the file says is what a restart with it would give. What cannot
// change is named, and then nothing does.
func ExampleRegistry_Apply() {
	db := must(partition.Open(driverName, dsn, partition.WithBudget(20)))
	defer db.Close()
	reg, _ := partition.RegistryOf(db)
	oltp, _ := reg.Pool(workload.OLTP)
	reporting, _ := reg.Pool(workload.Reporting)

	for _, file := range []string{
		`{"pools": {"reporting": {"max_open_conns": 6, "statement_timeout": "2m"}}}`,
		`{"default": "batch", "pools": {"reporting": {"max_open_conns": 2}, "etl": {"max_open_conns": 1}}}`,
		`{}`,
	} {
		c, err := partition.LoadConfig(strings.NewReader(file))
		if err == nil {
			err = reg.Apply(c)
		}
		fmt.Println(oltp.Config().MaxOpenConns, reporting.Config().MaxOpenConns, err)
	}
	// Output:
	// 10 6 <nil>
	// 10 6 partition: Apply: cannot change while the registry is open: Default, pool "etl" (new)
	// 12 4 <nil>
}
