package partition_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// 40 reports a second at the peak, each holding its connection for 250 ms, with
// a fifth to spare.
func ExampleSize() {
	fmt.Println(partition.Size(40, 250*time.Millisecond, 1.2))
	// Output: 12
}

// The configuration of a service, as it stands in a file.
func ExampleLoadConfig() {
	c, err := partition.LoadConfig(strings.NewReader(`{
		"budget": 20,
		"pools": {
			"reporting": {"max_open_conns": 4, "acquire_timeout": "none"},
			"etl":       {"max_open_conns": 2, "statement_timeout": "10m"}
		}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Budget, c.Pools[workload.Reporting], c.Pools["etl"].StatementTimeout)
	// Output: 20 {"max_open_conns":4,"acquire_timeout":"none"} 10m0s
}

// A slip is refused where it stands.
func ExampleLoadConfig_slip() {
	_, err := partition.LoadConfig(strings.NewReader(`{"pools": {"reporting": {"acquire_timeout": "50"}}}`))
	fmt.Println(err)
	// Output: partition: pool "reporting": acquire_timeout must be a duration such as "50ms", or "none", got "50"
}

// An operator's change to one deployment.
func ExampleConfigFromEnv() {
	os.Setenv("SHOPDB_REPORTING_MAX_OPEN_CONNS", "3")
	os.Setenv("SHOPDB_HOST", "db.internal") // not ours, and left alone
	c, err := partition.ConfigFromEnv("SHOPDB")
	fmt.Println(c.Pools[workload.Reporting], err)
	// Output: {"max_open_conns":3} <nil>
}
