package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Report is one run on one server.
type Report struct {
	Server  string    `json:"server"` // name and version
	Note    string    `json:"note"`   // how it was run
	Began   time.Time `json:"began"`
	LeftOut []string  `json:"left_out,omitempty"` // what could not be staged here, and why
	Days    []Day     `json:"days"`
}

// Day is one kind of trouble, played in several arrangements.
type Day struct {
	Name    string `json:"name"`
	Text    string `json:"text"` // what happens on it
	Acts    []Act  `json:"acts"`
	Verdict string `json:"verdict"`
	Passed  bool   `json:"passed"`
}

// Act is a day as it went in one arrangement.
type Act struct {
	Arrangement string  `json:"arrangement"`
	Summary     Summary `json:"summary"`
	Counts      []Count `json:"counts,omitempty"`
	Spans       []Span  `json:"spans,omitempty"` // in which logins may fail
	Bound       Millis  `json:"bound,omitempty"` // that their p99 has to keep; 0: none
	Logins      []Login `json:"logins"`
}

// Summary is what became of the logins outside the spans.
type Summary struct {
	Logins int    `json:"logins"`
	Failed int    `json:"failed"`
	P50    Millis `json:"p50_ms"`
	P99    Millis `json:"p99_ms"`
	Max    Millis `json:"max_ms"`
}

// String is one line.
func (s Summary) String() string {
	return fmt.Sprintf("%d of %d logins failed, p99 %v", s.Failed, s.Logins, s.P99)
}

// Count is something that was counted, and what came out.
type Count struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Span is a part of a day, such as the time in which the server was down.
type Span struct {
	Name string `json:"name"`
	From Millis `json:"from_ms"`
	To   Millis `json:"to_ms"`
}

// Login is one login: when it was due, and how long after that it had ended.
type Login struct {
	At, Took time.Duration
	Failed   bool
}

// MarshalJSON writes [at, took, failed] with the times in milliseconds and
// failed as 0 or 1: there are thousands.
func (l Login) MarshalJSON() ([]byte, error) {
	failed := 0
	if l.Failed {
		failed = 1
	}
	return json.Marshal([]any{Millis(l.At), Millis(l.Took), failed})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Login) UnmarshalJSON(data []byte) error {
	var at, took Millis
	var failed int
	err := json.Unmarshal(data, &[]any{&at, &took, &failed})
	*l = Login{At: time.Duration(at), Took: time.Duration(took), Failed: failed != 0}
	return err
}

// Excused reports whether the login was under way in one of the spans.
func (l Login) Excused(spans []Span) bool {
	return slices.ContainsFunc(spans, func(s Span) bool {
		return l.At+l.Took >= time.Duration(s.From) && l.At <= time.Duration(s.To)
	})
}

// Summarise leaves out the logins that were under way in one of the spans.
// Those that failed count in the latencies too.
func Summarise(logins []Login, spans []Span) Summary {
	var s Summary
	var took []time.Duration
	for _, l := range logins {
		if l.Excused(spans) {
			continue
		}
		took = append(took, l.Took)
		if l.Failed {
			s.Failed++
		}
	}
	slices.Sort(took)
	s.Logins = len(took)
	s.P50, s.P99, s.Max = percentile(took, 50), percentile(took, 99), percentile(took, 100)
	return s
}

// percentile is the smallest of the sorted values that at least p percent of
// them do not exceed; 0 if there are none.
func percentile(sorted []time.Duration, p int) Millis {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return Millis(sorted[max(rank, 1)-1])
}

// Save writes the report to dir/name.json, and dir/index.html anew from all
// reports that are there, since each server may have a process of its own.
func (r Report) Save(dir, name string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), data, 0o644); err != nil {
		return err
	}
	reports, err := load(dir)
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, "index.html"), reports...)
}

// load reads all reports in dir, by the names of their files.
func load(dir string) (reports []Report, err error) {
	names, _ := filepath.Glob(filepath.Join(dir, "*.json")) // fails on a bad pattern alone
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var r Report
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}
