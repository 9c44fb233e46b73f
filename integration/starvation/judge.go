package starvation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/report"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// outcome is a scene that is over.
type outcome struct {
	act      report.Act
	quiet    report.Summary // of the partitions alone
	sessions int            // the most on the server
	left     string         // pools whose permits did not come back
	*scene
}

// expect sets the bound by what logins took when it was quiet, or had taken
// before an earlier attempt: what the machine does by itself it may do again.
func (o *outcome) expect(quiet report.Summary) {
	if quiet.P99 >= o.quiet.P99 {
		o.quiet = quiet
		o.act.Bound = quiet.P99*3/2 + report.Millis(2*time.Millisecond)
	}
}

// wrong lists what must not be in the partitions, except for what may be the
// machine: see late.
func (o outcome) wrong() (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if n := o.act.Summary.Failed; n > 0 && len(o.spans) == 0 && !o.busy() {
		add("%d logins failed while the server was alive, the first with: %v", n, o.failure())
	}
	if o.sessions > total {
		add("the server had %d sessions at once, more than the %d of all pools", o.sessions, total)
	}
	if o.left != "" {
		add("permits did not come back: %s", o.left)
	}
	if o.refused() == 0 {
		add("nobody was refused: there was no crowd")
	}
	for _, name := range o.names() {
		c, pool := o.calls[name], o.pools[name]
		if most := o.pools.longest(name); c.longest > most {
			add("a call in %s took %v, more than its timeouts and the grace", name, c.longest.Round(time.Millisecond))
		}
		if c.patience > pool.AcquireTimeout+slack {
			add("a call in %s was refused after %v, its acquire timeout is %v", name, c.patience.Round(time.Millisecond), pool.AcquireTimeout)
		}
		if pool.MaxHold > 0 && c.served <= pool.MaxOpenConns {
			add("%s served %d calls with its %d connections, and none after they had leaked", name, c.served, pool.MaxOpenConns)
		}
	}
	return list
}

// busy reports whether the machine did so much else that logins took their time
// when nothing of ours ran.
func (o outcome) busy() bool { return o.quiet.P99 > report.Millis(busyFrom) }

const busyFrom = 30 * time.Millisecond

// refused counts the calls beside login that a pool turned away.
func (o outcome) refused() (n int) {
	for _, c := range o.calls {
		n += c.refused
	}
	return n
}

// late lists what came later than it must, which may be the machine.
func (o outcome) late() (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if o.quiet.Failed > 0 {
		add("%d logins failed before anything happened", o.quiet.Failed)
	}
	if n := o.act.Summary.Failed; n > 0 && len(o.spans) == 0 && o.busy() {
		add("%d logins failed on a machine with other work (p99 %v when it was quiet), the first with: %v", n, o.quiet.P99, o.failure())
	}
	if p99 := o.act.Summary.P99; p99 > o.act.Bound {
		add("the p99 of logins was %v, over its bound of %v", p99, o.act.Bound)
	}
	if n := o.act.Summary.Failed; n > 0 && len(o.spans) > 0 {
		add("%d logins failed later than %v after the server was back, the first with: %v", n, recovery, o.failure())
	}
	for _, name := range o.names() {
		switch after := o.calls[name].recovered; {
		case o.up.IsZero():
		case after == 0:
			add("%s did not serve any more after the server was back", name)
		case after > recovery:
			add("%s served again only %v after the server was back", name, report.Millis(after))
		}
	}
	return list
}

// proves reports whether the shared pool was seen to fail where partitions with
// this bound did not have to.
func (o outcome) proves(bound report.Millis) bool {
	s := o.act.Summary
	return s.Failed*10 >= s.Logins || s.P99 > 10*bound || o.sessions > 2*total
}

// names are the workloads beside login that called, in order.
func (s *scene) names() (names []workload.Name) {
	for name := range s.calls {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// counts are the figures for the page.
func (o outcome) counts() (counts []report.Count) {
	add := func(name, format string, args ...any) {
		counts = append(counts, report.Count{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	for _, name := range o.names() {
		c := o.calls[name]
		again := ""
		if c.recovered > 0 {
			again = fmt.Sprintf(", served again after %v", report.Millis(c.recovered))
		}
		add(string(name), "%d served, %d rejected, %d failed%s", c.served, c.refused, c.failed, again)
	}
	add("sessions on the server", "at most %d of %d", o.sessions, total)
	if o.quiet.Logins > 0 {
		add("p99 when it was quiet", "%v", o.quiet.P99)
	}
	return counts
}

// verdict is what is said of a day, and whether it holds.
func verdict(one, parts outcome, attempt int) (text string, passed bool) {
	var said []string
	passed = true
	fails := func(text string) {
		said = append(said, text)
		passed = false
	}
	if !one.proves(parts.act.Bound) {
		fails("The one pool did not suffer, so that this proves nothing")
	}
	for _, what := range slices.Concat(parts.wrong(), parts.late()) {
		fails("In the partitions " + what)
	}
	if passed {
		said = append(said, fmt.Sprintf("In the one pool %d of %d logins failed; in the partitions %d of %d, with a p99 of %v (%v when it was quiet)",
			one.act.Summary.Failed, one.act.Summary.Logins, parts.act.Summary.Failed, parts.act.Summary.Logins, parts.act.Summary.P99, parts.quiet.P99))
	}
	if attempt > 1 {
		said = append(said, fmt.Sprintf("Attempt %d: before, nothing but a time was wrong", attempt))
	}
	return strings.Join(said, ". ") + ".", passed
}
