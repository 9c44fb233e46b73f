package starvation

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/report"
)

const (
	quietTime = 3 * time.Second
	attempts  = 3
)

// Exercise stages all days on s, one after the other, and writes the report. It
// measures time: run nothing beside it.
func Exercise(t *testing.T, s Server) {
	t.Helper()
	st := newStage(t, s)
	r := report.Report{
		Server: s.Name() + " " + st.version(),
		Note:   fmt.Sprintf("%s on %d cores, driver %s, %s", runtime.GOOS, runtime.NumCPU(), s.Driver(), runtime.Version()),
		Began:  time.Now(),
	}
	defer func() { save(t, r, s.Name()) }()
	t.Logf("%s (%s)", r.Server, r.Note)
	for _, d := range days {
		if !d.staged(s) {
			r.LeftOut = append(r.LeftOut, fmt.Sprintf("%s, which needs %s.", d.name, d.lacks))
			t.Logf("left out: %s, which needs %s", d.name, d.lacks)
			continue
		}
		t.Run(d.name, func(t *testing.T) { r.Days = append(r.Days, d.stage(t, st)) })
	}
}

func (d day) stage(t *testing.T, st *stage) report.Day {
	var other *stage
	if d.other {
		other = newStage(t, st.server.(replicator).Replica(t))
	}
	if d.network {
		st = st.detour(t)
	}
	one := d.run(t, shared, st, other)
	parts, attempt := d.run(t, partitioned, st, other), 1
	for ; len(parts.late()) > 0 && len(parts.wrong()) == 0 && attempt < attempts; attempt++ {
		t.Logf("attempt %d: %s", attempt, strings.Join(parts.late(), ", "))
		again := d.run(t, partitioned, st, other)
		if parts.quiet.Failed == 0 { // else it was not quiet
			again.expect(parts.quiet)
		}
		parts = again
	}
	text, passed := verdict(one, parts, attempt)
	if !passed {
		t.Error(text)
	}
	return report.Day{Name: d.name, Text: d.text, Acts: []report.Act{one.act, parts.act}, Verdict: text, Passed: passed}
}

// run plays the day in one arrangement.
func (d day) run(t *testing.T, a arrangement, st, other *stage) outcome {
	t.Helper()
	s := a.begin(t, st, other, d)
	o := outcome{scene: s}
	if s.reg != nil {
		o.quiet = s.quiet(quietTime)
	}
	s.play(d.play)
	o.left, o.sessions = s.close(), s.watcher.most
	o.act = report.Act{Arrangement: a.name, Logins: plain(s.logins), Spans: s.spans}
	o.act.Summary = report.Summarise(o.act.Logins, s.spans)
	if s.reg != nil {
		o.expect(o.quiet)
	}
	o.act.Counts = o.counts()
	t.Logf("%s: %v; %v", a.name, o.act.Summary, o.act.Counts)
	return o
}

var unfit = regexp.MustCompile(`[^a-z0-9.]+`)

// save writes the report where it is wanted.
func save(t *testing.T, r report.Report, name string) {
	dir := os.Getenv("SQLBULKHEAD_REPORT_DIR")
	kept := dir != ""
	if !kept {
		dir = t.ArtifactDir()
	}
	name = strings.Trim(unfit.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if err := r.Save(dir, name); err != nil {
		t.Errorf("the report: %v", err)
		return
	}
	if kept {
		t.Logf("report: %s", filepath.Join(dir, "index.html"))
	}
}
