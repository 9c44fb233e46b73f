package prometheus_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// queries returns all that the dashboard asks: the expressions of its panels, and the queries of its variables.
func queries(t *testing.T) (exprs, variables []string) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
		Templating struct{ List []struct{ Definition string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q asks nothing", p.Title)
		}
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	for _, v := range dashboard.Templating.List {
		if v.Definition != "" {
			variables = append(variables, v.Definition)
		}
	}
	// One that sits where the structure above does not look would be checked by nobody.
	if n := strings.Count(string(text), `"expr":`); n != len(exprs) || n == 0 {
		t.Fatalf("%d expressions, found %d", n, len(exprs))
	}
	return exprs, variables
}

var labelName = regexp.MustCompile(`([a-z_]+)(?:=|!=|=~|!~)"|\bby \(([a-z_, ]+)\)|, ([a-z_]+)\)$`)

func TestDashboardAsksForMetricsAndLabelsThatAreExported(t *testing.T) {
	t.Parallel()
	known, labels := exported(t), []string{"db_name", "pool", "reason", "outcome", "le"}
	exprs, variables := queries(t)
	for _, q := range slices.Concat(exprs, variables) {
		names := metricNames(q)
		if len(names) == 0 {
			t.Errorf("%s: asks for no metric of ours", q)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s: %s is not exported", q, name)
			}
		}
		for _, m := range labelName.FindAllStringSubmatch(q, -1) {
			for label := range strings.SplitSeq(strings.Join(m[1:], ""), ", ") {
				if !slices.Contains(labels, label) {
					t.Errorf("%s: no series has a label %s", q, label)
				}
			}
		}
	}
}

func TestEveryMetricButTheTwinsOfOthersIsOnTheDashboard(t *testing.T) {
	t.Parallel()
	exprs, _ := queries(t)
	all := strings.Join(exprs, "\n")
	for name := range exported(t) {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "sqlbulkhead_") && !strings.Contains(all, base) {
			t.Errorf("%s is on no panel", name)
		}
	}
}

// Prometheus itself reads each expression, with what Grafana puts in the place of its variables.
func TestDashboardIsUnderstoodByPrometheus(t *testing.T) {
	t.Parallel()
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	exprs, _ := queries(t)
	fill := strings.NewReplacer("$__rate_interval", "1m", "$db_name", "orders", "$pool", "oltp")
	for i, expr := range exprs {
		fmt.Fprintf(&rules, "  - record: r%d\n    expr: %q\n", i, fill.Replace(expr))
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}
