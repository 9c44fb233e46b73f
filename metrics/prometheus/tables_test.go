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
	before := readAll(snapshot{seen: &observed{}})
	for i := range reflect.TypeFor[partition.Stats]().NumField() {
		name := reflect.TypeFor[partition.Stats]().Field(i).Name
		if slices.Contains(elsewhere, name) {
			continue
		}
		s := snapshot{seen: &observed{}}
		switch field := reflect.ValueOf(&s.Stats).Elem().Field(i); {
		case field.CanInt():
			field.SetInt(7)
		case field.CanUint():
			field.SetUint(7)
		case field.Kind() == reflect.Bool:
			field.SetBool(true)
		case field.Kind() == reflect.String:
			field.SetString("seven")
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

func TestEveryReasonAndOutcomeHasARow(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct{ metric, label, source, constant string }{
		{"sqlbulkhead_connections_closed_total", "reason", "observer.go", `\bClose\w+ +CloseReason = "(\w+)"`},
		{"sqlbulkhead_statements_ended_total", "outcome", "ending.go", `\bEnd\w+ +EndOutcome = "(\w+)"`},
	} {
		source, err := os.ReadFile("../../partition/" + kind.source)
		if err != nil {
			t.Fatal(err)
		}
		texts := regexp.MustCompile(kind.constant).FindAllStringSubmatch(string(source), -1)
		if len(texts) < 3 {
			t.Fatalf("found %d in %s alone", len(texts), kind.source)
		}
		for _, m := range texts {
			if !slices.ContainsFunc(values, func(v value) bool {
				return v.name == kind.metric && v.label == kind.label && v.labelValue == m[1]
			}) {
				t.Errorf("%s has no row for %s %s", kind.metric, kind.label, m[1])
			}
		}
	}
}
