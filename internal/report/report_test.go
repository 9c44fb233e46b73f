package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestPercentileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	upTo := func(n int) []time.Duration {
		var d []time.Duration
		for i := range n {
			d = append(d, time.Duration(i+1))
		}
		return d
	}
	for _, c := range []struct {
		n, p int
		want Millis
	}{
		{0, 50, 0}, {1, 50, 1}, {1, 99, 1}, {1, 100, 1}, {2, 50, 1}, {3, 50, 2}, {2, 99, 2},
		{100, 50, 50}, {100, 99, 99}, {100, 100, 100}, {101, 99, 100}, {1000, 99, 990}, {99, 99, 99},
	} {
		if got := percentile(upTo(c.n), c.p); got != c.want {
			t.Errorf("p%d of %d: %d, want %d", c.p, c.n, got, c.want)
		}
	}
}

func TestLoginUnderWayInASpanIsLeftOut(t *testing.T) {
	t.Parallel()
	spans := []Span{{From: Millis(100 * ms), To: Millis(200 * ms)}}
	logins := []Login{
		{At: 10 * ms, Took: 1 * ms},
		{At: 90 * ms, Took: 20 * ms, Failed: true}, // ends in it
		{At: 150 * ms, Took: 500 * ms},
		{At: 199 * ms, Took: 1 * ms, Failed: true},
		{At: 201 * ms, Took: 5 * ms},
		{At: 300 * ms, Took: 3 * ms, Failed: true},
	}
	want := Summary{Logins: 3, Failed: 1, P50: Millis(3 * ms), P99: Millis(5 * ms), Max: Millis(5 * ms)}
	if got := Summarise(logins, spans); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// sample is a report with something of everything.
func sample(server string) Report {
	act := func(name string, failed bool) Act {
		a := Act{
			Arrangement: name,
			Counts:      []Count{{"reports done", "12"}},
			Spans:       []Span{{"frozen", Millis(time.Second), Millis(2 * time.Second)}},
			Bound:       Millis(4 * ms),
		}
		for i := range 400 {
			a.Logins = append(a.Logins, Login{At: time.Duration(i) * 10 * ms, Took: time.Duration(i%7+1) * ms, Failed: failed && i%3 == 0})
		}
		a.Summary = Summarise(a.Logins, a.Spans)
		return a
	}
	return Report{
		Server: server, Note: "on 2 cores", Began: time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC),
		LeftOut: []string{"Crash, which needs a server that can be killed."},
		Days: []Day{{
			Name: "Monday <morning>", Text: "Analysts & logins.", Verdict: "All is well.", Passed: true,
			Acts: []Act{act("one pool of 20", true), act("partitions 15+3+2", false)},
		}},
	}
}

func TestReportSurvivesJSON(t *testing.T) {
	t.Parallel()
	want := sample("PostgreSQL 15")
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v; got %+v", err, got)
	}
}

func TestPageHoldsTheReportsOfAllServersAndNothingElseIsLeft(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	for _, name := range []string{"postgres", "mariadb", "postgres"} {
		if err := sample("server "+name).Save(dir, name); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"<h2>server postgres</h2>": 1, "<h2>server mariadb</h2>": 1,
		`role="img"`: 4, "Monday &lt;morning&gt;</h3>": 2, "Left out: Crash": 2,
		"http://": 0, "https://": 0, "<script": 0, "src=": 0, "ZgotmplZ": 0,
	} {
		if got := strings.Count(string(page), text); got != want {
			t.Errorf("%q is there %d times, want %d", text, got, want)
		}
	}
	if files, _ := filepath.Glob(dir + "/*"); len(files) != 3 {
		t.Errorf("there are %v", files)
	}
	if hidden, _ := filepath.Glob(dir + "/.*"); len(hidden) != 0 {
		t.Errorf("left behind: %v", hidden)
	}
}

func TestFileOfAPageThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteFile(filepath.Join(dir, "no", "page.html"), sample("x")); err == nil {
		t.Error("no error for a directory that is not there")
	}
	if err := os.Mkdir(filepath.Join(dir, "page.html"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "page.html"), sample("x")); err == nil {
		t.Error("no error for a directory in its place")
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

func TestEveryMarkLiesInThePlot(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{0, time.Microsecond, ms, time.Second, time.Hour} {
		if at := y(took); at < top || at > bottom {
			t.Errorf("%v is drawn at %v", took, at)
		}
	}
	if y(ms) <= y(10*ms) {
		t.Error("slower is not higher")
	}
}

func TestMarkOnAnotherIsNotDrawn(t *testing.T) {
	t.Parallel()
	same := Login{At: 500 * ms, Took: ms}
	a := Act{Logins: []Login{same, same, {At: same.At, Took: same.Took, Failed: true}, {At: 600 * ms, Took: ms}}}
	p := plot(a, time.Second)
	if dots, crosses := strings.Count(p.Served, "h0"), strings.Count(p.Failed, "l4 4"); dots != 2 || crosses != 1 {
		t.Errorf("%d dots and %d crosses, want 2 and 1", dots, crosses)
	}
}

func TestMillisHasThreeDigitsOrSo(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0.00 ms", 1254 * time.Microsecond: "1.25 ms", 43 * ms: "43 ms", 999_500 * time.Microsecond: "1.00 s",
	} {
		if got := Millis(d).String(); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
