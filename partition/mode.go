package partition

import (
	"fmt"
)

// Mode is whether the pools' walls are enforced or only watched.
type Mode string

// The modes.
const (
	// Enforce: each workload has its pool, with its cap, its queue and its timeouts. It is the default.
	Enforce Mode = "enforce"
	// Observe: all workloads share one pool of the budget's size (the sum of the pools' sizes where there is no budget), as a
	// service had with SetMaxOpenConns, and nothing is enforced: a caller waits until its context ends, nobody is rejected, no
	// statement has a timeout of ours, a session is left as the server made it, a statement that was given up is left to the
	// driver, and nothing is taken back from its holder. Each workload's wall is only watched. [Registry.Plan] says what
	// enforcing would have done, and what size each pool needs; [Registry.Untagged] says which work carried no tag.
	//
	// Pools with a server of their own keep it; those on one server share a pool of the sum of their sizes. A context whose
	// tag no pool has counts for the fallback, or else the default, and so does one without a tag where tags are required.
	// What is left of a pool's own configuration is what reports: LeakAfter and LeakStacks. Lifetimes are those of the default
	// pool. Pause is an operator's act and not a wall, so it works: new acquires of that workload get ErrPaused, and those
	// that wait already are served. Resize moves the wall that is watched, and no connection.
	//
	// [Pool.Stats] counts the borrowings of the workload from the shared pool: InUse, PeakInUse, Waiting, Acquired, Waited,
	// WaitTime, CallerGaveUp and the hold times are what really happened; SaturatedFor and SaturatedTime are how long it held
	// as many connections as its own pool would have; Open is InUse, since idle connections belong to nobody; Opened and
	// OpenFailures are of dials that it caused, Closed of connections that it used last; nothing is rejected.
	Observe Mode = "observe"
)

// WithMode says whether walls are enforced or watched. Unset: [Enforce].
func WithMode(m Mode) Option {
	return func(o *options) { o.setMode(m, "WithMode: mode") }
}

func (o *options) setMode(m Mode, label string) {
	if err := checkMode(m, label); err != nil && o.err == nil {
		o.err = fmt.Errorf("partition: %w", err)
	}
	o.mode = m
}

// Mode returns the mode that the registry was opened in. It does not change.
func (r *Registry) Mode() Mode { return r.mode }

// checkMode refuses what is no mode. label names what holds it.
func checkMode(m Mode, label string) error {
	if m == Enforce || m == Observe {
		return nil
	}
	return fmt.Errorf("%s must be %q or %q, got %s", label, Enforce, Observe, shown(string(m)))
}
