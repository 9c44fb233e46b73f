package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// The steps of docs/adopt.md, one after the other: its commands, and what is to be seen after them.
func TestServiceIsAdoptedStepByStep(t *testing.T) {
	n := begin(t)
	n.serves("go run ./examples/adopt")
	if said := n.does("curl -d user=ada localhost:8080/login"); said != "welcome ada\n" {
		t.Errorf("the login says %q", said)
	}

	t.Log("1. get it")
	n.does("go get github.com/sqlbulkhead/sqlbulkhead")
	n.builds(core)
	if sum := n.read("go.sum"); strings.Count(sum, "\n") != 2 || strings.Count(sum, "github.com/sqlbulkhead/sqlbulkhead v0.0.0") != 2 {
		t.Errorf("the core brought other modules with it:\n%s", sum)
	}
	n.does("go get github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus")
	shop, err := os.ReadFile("shop.go")
	if err != nil {
		t.Fatal(err)
	}
	n.write("shop.go", string(shop))
	n.builds("package main\n\nfunc main() { open(\"none\", \"\", \"\") }\n")

	t.Log("2. tag what is slow")
	n.does("curl localhost:8080/export")
	shows(t, blocks(t, "text")[0], n.does("curl localhost:8080/untagged"))

	t.Log("4. read the plan")
	n.does("seq 100 | xargs -P 30 -I{} curl -s -o /dev/null localhost:8080/report")
	plan := n.does("curl localhost:8080/plan")
	for _, want := range []string{"mode observe", "oltp", "reporting", "too small"} { // squeezed, too, unless the machine is slow
		if !strings.Contains(plan, want) {
			t.Errorf("the plan says nothing of %s", want)
		}
	}
	shows(t, headings(blocks(t, "text")[1]), headings(plan))
	watched := n.rush(3 * time.Second)
	if watched.refused.Load() > 0 || watched.reports.Load() == 0 || watched.missed.Load() == 0 {
		t.Errorf("observed: %s", watched)
	}

	t.Log("5. enforce it")
	n.does("curl localhost:8080/plan/config >pools.json")
	n.serves("DB_MODE=observe go run ./examples/adopt --config pools.json")
	n.isIn(partition.Observe)
	n.serves("go run ./examples/adopt --config pools.json")
	n.isIn(partition.Enforce)

	t.Log("6. have Prometheus scrape it")
	n.does(`cp "$(go list -m -f '{{.Dir}}' github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus)/rules.yml" .`)
	n.write("prometheus.yml", strings.NewReplacer("localhost:8080", n.address, "15s", "1s").Replace(blocks(t, "yaml")[0]))
	n.does("promtool check rules rules.yml")
	n.does("promtool check config prometheus.yml")
	n.does("curl -s localhost:8080/metrics | promtool check metrics")
	s := n.scrapes("prometheus --config.file=prometheus.yml --storage.tsdb.path=data")
	s.until(func() string { return lacks(s.find(`up{job="shop"}`).most == 1, "a first scrape") })
	if open := n.does(`promtool query instant http://localhost:9090 'go_sql_open_connections{db_name="shop",pool="oltp"}'`); !strings.Contains(open, "} => 1 @") {
		t.Errorf("Prometheus has %q, and Warm has opened 1", open)
	}
	if alerts := n.does("curl 'localhost:9090/api/v1/rules?type=alert'"); !strings.Contains(alerts, `"name":"SqlbulkheadPoolTooSmall"`) {
		t.Error("Prometheus does not have the alerts")
	}

	enforced := n.rush(3 * time.Second)
	t.Logf("observed: %s; enforced: %s", watched, enforced)
	if enforced.refused.Load() == 0 || enforced.reports.Load() == 0 {
		t.Errorf("enforced: %s", enforced)
	}
	if enforced.missed.Load()*watched.logins.Load()*2 > watched.missed.Load()*enforced.logins.Load() {
		t.Error("enforcing the plan did not help the logins")
	}
	s.ruled()

	t.Log("7. import the dashboard")
	n.does(`cp "$(go list -m -f '{{.Dir}}' github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus)/dashboard.json" .`)
	s.shows(imported(t, filepath.Join(n.dir, "dashboard.json")))

	t.Log("8. look at it live")
	numbers := n.does("curl 'localhost:8080/debug/bulkhead/?format=json'")
	_, _, page := n.get("/debug/bulkhead/")
	for _, want := range []string{"oltp", "reporting"} {
		if !strings.Contains(page, want) || !strings.Contains(numbers, `"`+want+`"`) {
			t.Errorf("the page or its numbers lack the pool %s", want)
		}
	}
	n.done()
}

func (n *newcomer) read(name string) string {
	n.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, name))
	if err != nil {
		n.Fatal(err)
	}
	return string(text)
}

// core is a program that uses the core alone.
const core = `package main

import (
	_ "github.com/sqlbulkhead/sqlbulkhead/debugpage"
	_ "github.com/sqlbulkhead/sqlbulkhead/httpbulkhead"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

func main() { partition.Open("none", "none", partition.WithBudget(8), partition.WithMode(partition.Observe)) }
`

// builds builds a program in the newcomer's module, with nothing but what the page has got.
func (n *newcomer) builds(main string) {
	n.Helper()
	n.write("main.go", main)
	c := exec.Command("go", "build", "-o", os.DevNull, ".")
	c.Dir, c.Env = n.dir, n.env
	if out, err := c.CombinedOutput(); err != nil {
		n.Fatalf("%v\n%s", err, out)
	}
}

func (n *newcomer) isIn(mode partition.Mode) {
	n.Helper()
	if _, _, plan := n.get("/plan"); !strings.HasPrefix(plan, "mode "+string(mode)+",") {
		n.Errorf("it is not in mode %s:\n%s", mode, plan)
	}
}

// ruled waits until Prometheus has evaluated the rules, and recorded that reports are rejected.
func (s scraper) ruled() {
	s.Helper()
	s.until(func() string {
		for name, health := range s.rules() {
			// That of the capacity has a quarter of an hour of its own.
			if health != "ok" && name != "SqlbulkheadCapacityToGiveBack" {
				return "an evaluation of " + name + ": " + health
			}
		}
		const ratio = `pool:sqlbulkhead_rejections:ratio5m{db_name="shop",pool="reporting"}`
		return lacks(s.find(ratio).most > 0, ratio)
	})
}

func TestEnvironmentHasTheLastWordOnTheMode(t *testing.T) {
	t.Setenv("DB_MODE", "enforce")
	s, err := open("sqlite", filepath.Join(t.TempDir(), "shop.sqlite"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.db.Close()
	if m := s.reg.Mode(); m != partition.Enforce {
		t.Errorf("the mode is %q", m)
	}
	t.Setenv("DB_MODE", "shadow")
	if _, err := open("sqlite", "unused", ""); err == nil || !strings.Contains(err.Error(), "DB_MODE") {
		t.Errorf("got %v", err)
	}
}

// Apply puts a file in the place of the one before, and not in the environment's.
func TestEnvironmentHasTheLastWordOnLaterFilesToo(t *testing.T) {
	for name, value := range map[string]string{
		"DB_MODE": "enforce", "DB_BUDGET": "9", "DB_DEFAULT": "batch", "DB_REQUIRE_TAG": "true", "DB_OLTP_ACQUIRE_TIMEOUT": "500ms",
	} {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "pools.json")
	if err := os.WriteFile(file, []byte(`{"mode": "enforce", "budget": 8, "pools": {"oltp": {"max_open_conns": 2}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, first := range []string{"", file} {
		s, err := open("sqlite", filepath.Join(dir, "shop.sqlite"), first)
		if err != nil {
			t.Fatal(err)
		}
		defer s.db.Close()
		later, err := partition.LoadConfig(strings.NewReader(`{"budget": 8, "pools": {"oltp": {"max_open_conns": 3, "acquire_timeout": "1s"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		env, err := partition.ConfigFromEnv("DB")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.reg.Apply(later.Merge(env)); err != nil {
			t.Errorf("begun with %q: %v", first, err)
		}
		pool, _ := s.reg.Pool(workload.OLTP)
		if c := pool.Config(); c.MaxOpenConns != 3 || c.AcquireTimeout != 500*time.Millisecond || s.reg.Plan().Budget != 9 {
			t.Errorf("begun with %q: %s, budget %d", first, c, s.reg.Plan().Budget)
		}
	}
}
