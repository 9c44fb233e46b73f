package prometheus

import (
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// elsewhere are the statistics that need no row.
var elsewhere = []string{
	"Workload",                     // a label
	"Held", "HoldTime", "HoldMean", // the histogram of holds
	"Closed",       // by reason
	"SaturatedFor", // is in SaturatedTime
	"Enforcement",  // no number
}

func TestEveryStatisticOfAPoolHasARow(t *testing.T) {
	t.Parallel()
	before := readAll(snapshot{})
	for i := range reflect.TypeFor[partition.Stats]().NumField() {
		name := reflect.TypeFor[partition.Stats]().Field(i).Name
		if slices.Contains(elsewhere, name) {
			continue
		}
		var s snapshot
		switch field := reflect.ValueOf(&s.Stats).Elem().Field(i); {
		case field.CanInt():
			field.SetInt(7)
		case field.CanUint():
			field.SetUint(7)
		case field.Kind() == reflect.Bool:
			field.SetBool(true)
		}
		if slices.Equal(readAll(s), before) {
			t.Errorf("no row of values reads Stats.%s", name)
		}
	}
}

func readAll(s snapshot) (all []float64) {
	for _, v := range values {
		if f := v.read(&s); math.IsNaN(f) {
			all = append(all, -1)
		} else {
			all = append(all, f)
		}
	}
	return all
}

func TestEveryReasonHasARow(t *testing.T) {
	t.Parallel()
	const metric = "sqlbulkhead_connections_closed_total"
	source, err := os.ReadFile("../../partition/observer.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`\bClose\w+ +CloseReason = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 4 {
		t.Fatalf("found %d reasons alone", len(reasons))
	}
	for _, m := range reasons {
		if !slices.ContainsFunc(values, func(v value) bool { return v.name == metric && v.labelValue == m[1] }) {
			t.Errorf("%s has no row for reason %s", metric, m[1])
		}
	}
}
