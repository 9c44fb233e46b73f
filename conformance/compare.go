package conformance

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// Report is what came of a comparison.
type Report struct {
	Behaviours  int
	Accepted    int // of the differences, those that are documented: see Accepted
	Random      int // not compared, since plain itself does not repeat them
	Differences []Difference
}

// Difference is a behaviour by which the two can be told apart.
type Difference struct{ Behaviour, Plain, Partitioned string }

func (d Difference) String() string {
	return fmt.Sprintf("%s\n\tplain:       %s\n\tpartitioned: %s", d.Behaviour, d.Plain, d.Partitioned)
}

// Exercise runs the suite and fails the test for each difference that is not accepted.
func Exercise(t *testing.T, tw Twin) Report {
	t.Helper()
	r := Compare(t, tw)
	for _, d := range r.Differences {
		t.Errorf("%s: %v", tw.Name, d)
	}
	return r
}

// Compare runs the suite.
func Compare(tb testing.TB, tw Twin) (r Report) {
	tb.Helper()
	for _, sc := range append(slices.Clone(scenarios), tw.Extra...) {
		if sc.Needs == nil || sc.Needs(tw.Words) {
			r.compare(tb, tw, sc)
		}
	}
	return r
}

// scenarios is the suite, in the order in which it runs.
var scenarios = slices.Concat(argumentScenarios, resultScenarios, rowScenarios, txScenarios, connScenarios,
	stmtScenarios, cancelScenarios, faultScenarios)

// attempts is how often an unsteady scenario is run, to see all outcomes that plain has.
const attempts = 20

func (r *Report) compare(tb testing.TB, tw Twin, sc Scenario) {
	tb.Helper()
	table := fmt.Sprintf("conformance%d", tables.Add(1))
	plain, ours := sc.on(tb, tw, tw.Plain, table), sc.on(tb, tw, tw.Partitioned, table)
	meant, differences := sort(sc, ours.beside(plain))
	for again := 1; (sc.Unsteady || sc.Random) && len(differences) > 0 && again < attempts; again++ {
		plain.merge(sc.on(tb, tw, tw.Plain, table))
		if sc.Random {
			ours.merge(sc.on(tb, tw, tw.Partitioned, table))
			r.Random += plain.dropRandom(ours)
		}
		meant, differences = sort(sc, ours.beside(plain))
	}
	r.Behaviours += len(plain.names)
	r.Accepted += meant
	r.Differences = append(r.Differences, differences...)
}

// sort tells the differences that are accepted from those that are not.
func sort(sc Scenario, all []Difference) (meant int, rest []Difference) {
	for _, d := range all {
		d.Behaviour = sc.Name + ": " + d.Behaviour
		if accepted(d) {
			meant++
		} else {
			rest = append(rest, d)
		}
	}
	return meant, rest
}

var tables atomic.Int64

// on runs the scenario on a new handle.
func (sc Scenario) on(tb testing.TB, tw Twin, open Open, table string) record {
	tb.Helper()
	for deadline := soon; ; deadline *= 2 {
		s := &Side{TB: tb, Words: tw.Words, DB: open(tb, sc.Conns), Table: table, plain: tw.Plain, soon: deadline}
		sc.Run(s)
		s.Note("the handle at the end", s.unsettled())
		s.Note("close the handle", s.DB.Close())
		if s.watcher != nil {
			s.watcher.Close()
		}
		if !s.late || deadline > 2*time.Second {
			return s.record
		}
	}
}

// unsettled says what is left in use, where that can be seen.
func (s *Side) unsettled() (left string) {
	reg, ok := partition.RegistryOf(s.DB)
	if !ok {
		return ""
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		left = ""
		for _, p := range reg.Pools() {
			if st := p.Stats(); st.InUse+st.Waiting > 0 {
				left = fmt.Sprintf("pool %s: in use %d, waiting %d", p.Name(), st.InUse, st.Waiting)
			}
		}
		if left == "" || time.Now().After(deadline) {
			return left
		}
	}
}

// record is the outcomes of one side, by behaviour. A steady behaviour has one.
type record struct {
	names    []string
	outcomes map[string][]string
}

func (r *record) add(name, outcome string) {
	if r.outcomes == nil {
		r.outcomes = make(map[string][]string)
	}
	unique := name
	for n := 2; r.outcomes[unique] != nil; n++ {
		unique = fmt.Sprintf("%s #%d", name, n)
	}
	r.names = append(r.names, unique)
	r.outcomes[unique] = []string{outcome}
}

// merge adds the outcomes of another run.
func (r *record) merge(other record) {
	for _, name := range other.names {
		if r.outcomes[name] == nil {
			r.names = append(r.names, name)
		}
		if !slices.Contains(r.outcomes[name], other.outcomes[name][0]) {
			r.outcomes[name] = append(r.outcomes[name], other.outcomes[name][0])
		}
	}
}

// dropRandom forgets the behaviours that plain does not repeat, and those that are only sometimes another in ours.
func (r *record) dropRandom(ours record) int {
	before := len(r.names)
	r.names = slices.DeleteFunc(r.names, func(name string) bool {
		outcomes := r.outcomes[name]
		return len(outcomes) > 1 || len(ours.outcomes[name]) > 1 && slices.Contains(ours.outcomes[name], outcomes[0])
	})
	return before - len(r.names)
}

// beside returns the behaviours whose outcome none of plain's equals, and those that one side alone got to.
func (r *record) beside(plain record) (ds []Difference) {
	for _, name := range plain.names {
		if r.outcomes[name] == nil {
			ds = append(ds, Difference{name, strings.Join(plain.outcomes[name], " or "), "(not reached)"})
		} else if !slices.Contains(plain.outcomes[name], r.outcomes[name][0]) {
			ds = append(ds, Difference{name, strings.Join(plain.outcomes[name], " or "), r.outcomes[name][0]})
		}
	}
	for _, name := range r.names {
		if plain.outcomes[name] == nil {
			ds = append(ds, Difference{name, "(not reached)", r.outcomes[name][0]})
		}
	}
	return ds
}
