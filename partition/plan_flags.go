package partition

import "time"

// Flag is something about a pool that somebody should look at. Its text is stable.
type Flag string

// The flags.
const (
	// FlagNeverUsed: nobody asked for a connection. Take the pool out, or find out why its work is not tagged.
	FlagNeverUsed Flag = "never_used"
	// FlagThin: fewer than 100 borrowings have ended, or a minute has not passed. HoldP99 then is about the longest.
	FlagThin Flag = "thin_evidence"
	// FlagAlwaysFull: as many were in use as the pool has, for more than half of the time.
	FlagAlwaysFull Flag = "always_full"
	// FlagTooSmall: of a thousand callers one or more was turned away while connections were held no longer than usual, or
	// one of ten had to wait. The traffic is healthy, and more than the pool is made for.
	FlagTooSmall Flag = "too_small"
	// FlagMoreThanNeeded: it has at least twice what it wants, and half of that was never in use.
	FlagMoreThanNeeded Flag = "more_than_needed"
	// FlagSqueezed: it gets less than it wants, since there is no more. Its callers will be turned away.
	FlagSqueezed Flag = "squeezed"
	// FlagMixed: some holds are 50 times as long as most, and 100 ms or more: there are two kinds of work in it. Tag the
	// slow one ([Registry.Untagged]).
	FlagMixed Flag = "mixed"
)

// enough is how many borrowings a quantile of 99 % takes.
const enough = 100

// thin reports whether there is little to plan on.
func (p *PoolPlan) thin(window time.Duration) bool {
	return p.Evidence.Held < enough || window < time.Minute
}

func (p *PoolPlan) flag(window time.Duration) {
	e := &p.Evidence
	if !p.used() {
		p.Flags = []Flag{FlagNeverUsed}
		return
	}
	rejected := e.RejectedQueueFull + e.RejectedTimeout
	for _, f := range []struct {
		flag  Flag
		holds bool
	}{
		{FlagThin, p.thin(window)},
		{FlagAlwaysFull, e.Saturated > window/2},
		{FlagTooSmall, e.RejectedUsual > 0 && 1000*e.RejectedUsual >= e.Arrivals || 10*e.Waited >= e.Arrivals && e.Waited > rejected},
		{FlagMoreThanNeeded, !p.thin(window) && p.MaxOpenConns >= 2*p.Wants && 2*e.PeakInUse <= p.MaxOpenConns},
		{FlagSqueezed, p.Size < p.Wants},
		{FlagMixed, e.Held >= enough && e.HoldP99 >= 50*e.HoldP50 && e.HoldP99 >= 100*time.Millisecond},
	} {
		if f.holds {
			p.Flags = append(p.Flags, f.flag)
		}
	}
}
