package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is what go test -json prints a line of; see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string // empty: about the package
	Output  string
}

// output is a line that a test or, without a name, its package printed.
type output struct{ test, text string }

// packageRun is one package while its tests run.
type packageRun struct {
	outputs []output
	results map[string]string // by test: pass, fail or skip; "run" until then
}

// summary turns events into a report.
type summary struct {
	out      io.Writer
	packages map[string]*packageRun
	counts   map[string]int // of tests, subtests included, by result
	skips    map[string]int // by reason
	servers  servers
}

func newSummary(out io.Writer) *summary {
	return &summary{
		out:      out,
		packages: map[string]*packageRun{},
		counts:   map[string]int{},
		skips:    map[string]int{},
	}
}

// line takes one line of go test -json. What is not JSON is passed on.
func (s *summary) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		fmt.Fprintf(s.out, "%s", line)
		return
	}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(s.out, e.Output)
	case e.Package != "":
		s.event(s.packageOf(e), e)
	}
}

func (s *summary) packageOf(e event) *packageRun {
	p := s.packages[e.Package]
	if p == nil {
		p = &packageRun{results: map[string]string{}}
		s.packages[e.Package] = p
	}
	return p
}

func (s *summary) event(p *packageRun, e event) {
	switch e.Action {
	case "output":
		p.outputs = append(p.outputs, output{e.Test, e.Output})
		s.servers.note(e.Output)
	case "run", "pass", "fail", "skip":
		if e.Test != "" {
			p.results[e.Test] = e.Action
			return
		}
		if e.Action != "run" {
			s.finish(e.Package, p, e.Action)
		}
	}
}

// finish counts a package's tests and prints what is worth it. A test that
// never ended, and a package that failed without a failing test (it did not
// build, or TestMain failed), are failures.
func (s *summary) finish(name string, p *packageRun, result string) {
	delete(s.packages, name)
	failed := 0
	for test, r := range p.results {
		if r == "run" {
			r = "fail"
			p.results[test] = r
		}
		if r == "fail" {
			failed++
		}
		if r == "skip" {
			s.skips[p.skipReason(test)]++
		}
		s.counts[r]++
	}
	if result == "fail" && failed == 0 {
		s.counts["fail"]++
	}
	p.print(s.out, result == "fail")
}

var (
	// verdict is the line that go test ends a package with.
	verdict = regexp.MustCompile(`^(ok|FAIL|\?|---)? *\t`)
	// chatter is what -json makes go test say beyond its usual output.
	chatter = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME) |^(PASS|FAIL)\n$|^servers: `)
	// headline is how go test reports the end of a test.
	headline = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): `)
	// position is what Log and Skip put before a text.
	position = regexp.MustCompile(`^ +[^ :]+\.go:\d+: `)
)

// print writes all that failed tests printed, each after its own "--- FAIL"
// line, then what the package itself said and its verdict.
func (p *packageRun) print(w io.Writer, failed bool) {
	if failed {
		for _, test := range p.failedTests() {
			p.printTest(w, test)
		}
	}
	for _, o := range p.outputs {
		if o.test == "" && (verdict.MatchString(o.text) || failed && !chatter.MatchString(o.text)) {
			io.WriteString(w, o.text)
		}
	}
}

// failedTests returns their names in the order in which they first spoke.
func (p *packageRun) failedTests() []string {
	var tests []string
	for _, o := range p.outputs {
		if p.results[o.test] == "fail" && !slices.Contains(tests, o.test) {
			tests = append(tests, o.test)
		}
	}
	return tests
}

func (p *packageRun) printTest(w io.Writer, test string) {
	for _, headlines := range []bool{true, false} {
		for _, o := range p.outputs {
			if o.test == test && headline.MatchString(o.text) == headlines && !chatter.MatchString(o.text) {
				io.WriteString(w, o.text)
			}
		}
	}
}

// skipReason returns the last thing that a skipped test logged.
func (p *packageRun) skipReason(test string) string {
	for _, o := range slices.Backward(p.outputs) {
		if o.test == test && position.MatchString(o.text) {
			return strings.TrimSpace(position.ReplaceAllString(o.text, ""))
		}
	}
	return "no reason given"
}

// close prints the end of the report. Packages that are still open then were
// interrupted.
func (s *summary) close() {
	for _, name := range slices.Sorted(maps.Keys(s.packages)) {
		s.finish(name, s.packages[name], "fail")
	}
	for _, reason := range slices.Sorted(maps.Keys(s.skips)) {
		fmt.Fprintf(s.out, "skipped %d: %s\n", s.skips[reason], reason)
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.counts["pass"], s.counts["fail"], s.counts["skip"])
	fmt.Fprintln(s.out, s.servers.String())
}
