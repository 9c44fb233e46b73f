package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const page = "../../docs/adopt.md"

// blocks are the page's fenced blocks in a language.
func blocks(t *testing.T, language string) (texts []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		texts = append(texts, m[1])
	}
	if len(texts) == 0 {
		t.Fatalf("the page has no block of %s", language)
	}
	return texts
}

func TestCodeOfThePageIsTheServices(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("shop.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[string]bool)
	for _, line := range strings.Split(string(source), "\n") {
		lines[strings.TrimSpace(line)] = true
	}
	for _, block := range blocks(t, "go") {
		for _, line := range strings.Split(block, "\n") {
			if !lines[strings.TrimSpace(line)] {
				t.Errorf("the service does not have the page's line %q", line)
			}
		}
	}
}

// A module of somebody else's, which takes the core alone.
func TestCoreIsGotByAnotherModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"go.mod": "module example.org/shop\n\ngo 1.25\n",
		"main.go": `package main

import "github.com/sqlbulkhead/sqlbulkhead/partition"

func main() { partition.Open("none", "none", partition.WithBudget(8), partition.WithMode(partition.Observe)) }
`,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const module = "github.com/sqlbulkhead/sqlbulkhead"
	for _, args := range [][]string{
		{"mod", "edit", "-replace", module + "=" + root, "-require", module + "@v0.0.0"},
		{"build", "-o", os.DevNull, "."},
	} {
		c := exec.Command("go", args...)
		c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if sum, err := os.Stat(filepath.Join(dir, "go.sum")); err == nil && sum.Size() > 0 {
		t.Error("the core brought other modules with it")
	}
}

// scraped has Prometheus itself read the metrics with the page's configuration, and asks it what the dashboard asks.
func (r *rig) scraped(dir string) {
	r.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		const line = "no prometheus here: install the Debian package prometheus"
		if os.Getenv("SQLBULKHEAD_REQUIRE_SERVERS") == "1" {
			r.Fatal(line)
		}
		r.Log("not scraped: " + line)
		return
	}
	rules, err := filepath.Abs("../../metrics/prometheus/rules.yml")
	if err != nil {
		r.Fatal(err)
	}
	config := strings.NewReplacer("rules.yml", rules, "localhost:8080", strings.TrimPrefix(r.url, "http://"), "15s", "1s").
		Replace(blocks(r.T, "yaml")[0])
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		r.Fatal(err)
	}
	address := freeAddress(r.T)
	server := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+address)
	if err := server.Start(); err != nil {
		r.Fatal(err)
	}
	defer func() { server.Process.Kill(); server.Wait() }()

	const series = `go_sql_open_connections{db_name="shop",pool="oltp"}`
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if found, _ := ask(address, series); found > 0 {
			break
		}
		if time.Now().After(deadline) {
			r.Fatalf("Prometheus has no %s", series)
		}
	}
	if found, err := ask(address, `up{job="shop"} == 1`); found != 1 {
		r.Errorf("up: %d, %v", found, err)
	}
	for _, query := range dashboardQueries(r.T) {
		if _, err := ask(address, query); err != nil {
			r.Errorf("%s: %v", query, err)
		}
	}
	status, _, text := r.answer(http.Get("http://" + address + "/api/v1/rules"))
	if status != http.StatusOK || !strings.Contains(text, "Sqlbulkhead") {
		r.Errorf("rules: %d %.200s", status, text)
	}
}

// ask returns how many series a query finds.
func ask(address, query string) (found int, err error) {
	response, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Error != "" {
		return 0, queryError(answer.Error)
	}
	return len(answer.Data.Result), nil
}

type queryError string

func (e queryError) Error() string { return string(e) }
