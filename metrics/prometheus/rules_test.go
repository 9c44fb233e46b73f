package prometheus_test

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// promtool runs Prometheus's own tool, or skips the test where there is none.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path := testserver.Program(t, "promtool", "prometheus")
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestRulesSayWhichTroubleItIs(t *testing.T) {
	t.Parallel()
	promtool(t, "test", "rules", "testdata/rules_test.yml", "testdata/endings_test.yml", "testdata/capacity_test.yml")
}

func TestRulesAskForMetricsThatAreExported(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	known := exported(t)
	for _, m := range regexp.MustCompile(`record: (\S+)`).FindAllStringSubmatch(string(text), -1) {
		known[m[1]] = true
	}
	asked := metricNames(string(text))
	if len(asked) < 10 {
		t.Fatalf("found the names of %d metrics alone", len(asked))
	}
	for _, name := range asked {
		if !known[name] {
			t.Errorf("%s is neither exported nor recorded", name)
		}
	}
}

// exported returns the names of all series that a collector exports.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	for name, f := range gather(t, setup(t).gatherer) {
		if f.GetType() != dto.MetricType_HISTOGRAM {
			names[name] = true
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			names[name+suffix] = true
		}
	}
	return names
}

var metricName = regexp.MustCompile(`\b(pool:|go_sql_|sqlbulkhead_)[a-z0-9_:]+`)

// metricNames returns the names of our metrics, and of those that our rules record, in an expression.
func metricNames(expr string) []string {
	set := make(map[string]bool)
	for _, name := range metricName.FindAllString(expr, -1) {
		set[name] = true
	}
	return slices.Sorted(maps.Keys(set))
}
