package main

import (
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// classic is the schema that any Grafana imports. Older ones do not know the one that is to replace it.
//
//lint:ignore SA1019 the dashboard is for older ones as well
type classic = dashboard.Dashboard

// imported is a dashboard, read with Grafana's own types, which refuse what they do not know and miss what they require:
// of the dashboard, its variables, its panels, their options and their queries.
func imported(t *testing.T, file string) (d classic) {
	t.Helper()
	cog.NewRuntime().RegisterPanelcfgVariant(timeseries.VariantConfig())
	cog.NewRuntime().RegisterDataqueryVariant(prometheus.VariantConfig())
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// In v0.0.22 the strict reading returns its list of errors even if that is empty, and then leaves the panels out.
	if err := new(classic).UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(panels(d)) == 0 {
		t.Fatal("it has no panel")
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	return d
}

const file = "../../metrics/prometheus/dashboard.json"

func TestDashboardIsOneThatGrafanaImports(t *testing.T) {
	t.Parallel()
	d := imported(t, file)
	if d.Uid == nil || !regexp.MustCompile(`^[a-zA-Z0-9_-]{8,40}$`).MatchString(*d.Uid) {
		t.Error("its uid is none")
	}
	if d.Id != nil {
		t.Error("its id is that of another Grafana's database")
	}
	if d.Title == nil || *d.Title == "" {
		t.Error("it has no title")
	}
	if newest := dashboard.NewDashboard().SchemaVersion; d.SchemaVersion == 0 || d.SchemaVersion > newest {
		t.Errorf("schema version %d, the newest is %d", d.SchemaVersion, newest)
	}
}

// No question is asked at the import, and a dashboard that is provisioned works, too.
func TestDashboardFindsItsDataSourceByAVariable(t *testing.T) {
	t.Parallel()
	d := imported(t, file)
	first := d.Templating.List[0]
	if first.Name != "datasource" || first.Type != dashboard.VariableTypeDatasource || *first.Query.String != "prometheus" {
		t.Fatalf("the first variable, %q, chooses no Prometheus", first.Name)
	}
	for _, v := range d.Templating.List[1:] {
		refersTo(t, "variable "+v.Name, v.Datasource, "${datasource}")
	}
	for _, p := range panels(d) {
		refersTo(t, *p.Title, p.Datasource, "${datasource}")
		for _, target := range p.Targets {
			refersTo(t, *p.Title, target.(*prometheus.Dataquery).Datasource, "${datasource}")
		}
	}
}

func refersTo(t *testing.T, who string, ref *common.DataSourceRef, uid string) {
	t.Helper()
	if ref == nil || ref.Type == nil || *ref.Type != "prometheus" || ref.Uid == nil || *ref.Uid != uid {
		t.Errorf("%s: its data source is not the variable's", who)
	}
}

func TestPanelsAreToldApartAndDoNotOverlap(t *testing.T) {
	t.Parallel()
	ids, cells := make(map[uint32]bool), make(map[[2]uint32]string)
	place := func(id *uint32, title *string, at *dashboard.GridPos) {
		if id == nil || *id == 0 || ids[*id] {
			t.Errorf("%s: no id of its own", *title)
		} else {
			ids[*id] = true
		}
		if at.X+at.W > 24 {
			t.Errorf("%s: wider than the 24 columns", *title)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := cells[[2]uint32{x, y}]; other != "" {
					t.Fatalf("%s is where %s is", *title, other)
				}
				cells[[2]uint32{x, y}] = *title
			}
		}
	}
	for _, p := range imported(t, file).Panels {
		if p.RowPanel != nil {
			place(&p.RowPanel.Id, p.RowPanel.Title, p.RowPanel.GridPos)
			continue
		}
		place(p.Panel.Id, p.Panel.Title, p.Panel.GridPos)
		var refs []string
		for _, target := range p.Panel.Targets {
			ref := target.(*prometheus.Dataquery).RefId
			if ref == nil || slices.Contains(refs, *ref) {
				t.Fatalf("%s: a query has no name of its own", *p.Panel.Title)
			}
			refs = append(refs, *ref)
		}
	}
}

func panels(d classic) (list []*dashboard.Panel) {
	for _, p := range d.Panels {
		if p.Panel != nil {
			list = append(list, p.Panel)
		}
	}
	return list
}

// filled are a dashboard's queries with its variables at All, and the range that Grafana gives a rate at one scrape in 15 s.
func filled(t *testing.T, d classic) (queries, variables []string) {
	t.Helper()
	values := []string{"$__rate_interval", "1m"}
	for _, v := range d.Templating.List {
		if v.AllValue != nil {
			values = append(values, "$"+v.Name, *v.AllValue)
		}
	}
	fill := func(query string) string {
		query = strings.NewReplacer(values...).Replace(query)
		if strings.Contains(query, "$") {
			t.Errorf("%s: has a variable that the dashboard has not", query)
		}
		return query
	}
	for _, p := range panels(d) {
		for _, target := range p.Targets {
			queries = append(queries, fill(target.(*prometheus.Dataquery).Expr))
		}
	}
	for _, v := range d.Templating.List {
		if v.Definition != nil {
			variables = append(variables, fill(*v.Definition))
		}
	}
	return queries, variables
}

// zero is what may be 0 all the time in a service that is well, or happens to be whenever it is scraped.
var zero = regexp.MustCompile(`go_sql_(in_use|idle)_connections|sqlbulkhead_(queue_depth|callers_gave_up_total|` +
	`statement_timeouts_total|connections_closed_total|dial_failures_total|paused|statements_ended_total|statements_ending|` +
	`leaks_total|reclaims_total|end_problem)`)

// shows asks Prometheus what the dashboard asks, until each panel has something to show.
func (s scraper) shows(d classic) {
	s.Helper()
	queries, variables := filled(s.T, d)
	for _, query := range queries {
		var f found
		s.until(func() string {
			f = s.find(query)
			return lacks(f.most > 0 || f.series > 0 && zero.MatchString(query), query)
		})
		s.Logf("%d series, at most %.3g: %s", f.series, f.most, query)
	}
	for _, query := range variables {
		m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(query)
		if m == nil {
			s.Fatalf("%s: what would Grafana ask?", query)
		}
		var values []string
		s.ask("/api/v1/label/"+m[2]+"/values", url.Values{"match[]": {m[1]}}, &values)
		want := map[string][]string{"db_name": {"shop"}, "pool": {"admin", "batch", "oltp", "reporting"}}[m[2]]
		if !slices.Equal(values, want) {
			s.Errorf("%s: %q, not %q", query, values, want)
		}
	}
}
