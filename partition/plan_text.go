package partition

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

var (
	_ json.Marshaler = Plan{}
	_ json.Marshaler = PoolPlan{}
	_ json.Marshaler = Evidence{}
	_ json.Marshaler = CallSite{}
	_ fmt.Stringer   = Plan{}
)

// String is the plan as a table for people.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mode %s, for %v since %s, budget %d, headroom %g\n",
		p.Mode, rounded(p.Window), p.Since.Format(time.RFC3339), p.Budget, p.Headroom)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	waited, rejected, timedOut := "waited", "rejected", "timed out"
	if p.Mode == Observe {
		waited, rejected, timedOut = "would wait", "be rejected", "time out"
	}
	fmt.Fprintf(w, "pool\tnow\tsize\twants\tarrivals\tpeak/s\thold p50\tp99\tin use\tfull\t%s\t%s\t%s\t  \n", waited, rejected, timedOut)
	for _, pool := range p.Pools {
		e := pool.Evidence
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.3g\t%v\t%v\t%d\t%.0f%%\t%d\t%d\t%d\t  %s\n",
			pool.Workload, pool.MaxOpenConns, pool.Size, pool.Wants, e.Arrivals, e.PeakRate,
			rounded(e.HoldP50), rounded(e.HoldP99), e.PeakInUse, 100*e.Saturated.Seconds()/max(p.Window.Seconds(), 1e-9),
			e.Waited, e.RejectedQueueFull+e.RejectedTimeout, e.StatementTimeouts, joinFlags(pool.Flags))
	}
	w.Flush()
	if p.Untagged > 0 {
		fmt.Fprintf(&b, "%d untagged: see Registry.Untagged\n", p.Untagged)
	}
	if p.UnknownTags > 0 {
		fmt.Fprintf(&b, "%d with a tag that no pool has\n", p.UnknownTags)
	}
	return b.String()
}

func joinFlags(flags []Flag) string {
	texts := make([]string, len(flags))
	for i, f := range flags {
		texts[i] = strings.ReplaceAll(string(f), "_", " ")
	}
	return strings.Join(texts, ", ")
}

// rounded has three digits.
func rounded(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// MarshalJSON writes snake_case, times as "50ms".
func (p Plan) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Mode        Mode       `json:"mode"`
		Since       time.Time  `json:"since"`
		Window      string     `json:"window"`
		Headroom    float64    `json:"headroom"`
		Budget      int        `json:"budget"`
		Untagged    uint64     `json:"untagged"`
		UnknownTags uint64     `json:"unknown_tags"`
		Pools       []PoolPlan `json:"pools"`
	}{p.Mode, p.Since, p.Window.String(), p.Headroom, p.Budget, p.Untagged, p.UnknownTags, p.Pools})
}

// MarshalJSON writes snake_case.
func (p PoolPlan) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Workload     workload.Name `json:"workload"`
		MaxOpenConns int           `json:"max_open_conns"`
		Wants        int           `json:"wants"`
		Size         int           `json:"size"`
		Flags        []Flag        `json:"flags"`
		Evidence     Evidence      `json:"evidence"`
	}{p.Workload, p.MaxOpenConns, p.Wants, p.Size, append([]Flag{}, p.Flags...), p.Evidence})
}

// MarshalJSON writes snake_case, times as "50ms".
func (e Evidence) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Arrivals          uint64  `json:"arrivals"`
		Rate              float64 `json:"rate"`
		PeakRate          float64 `json:"peak_rate"`
		Held              uint64  `json:"held"`
		HoldP50           string  `json:"hold_p50"`
		HoldP99           string  `json:"hold_p99"`
		PeakInUse         int     `json:"peak_in_use"`
		PeakDemand        int     `json:"peak_demand"`
		Saturated         string  `json:"saturated"`
		Waited            uint64  `json:"waited"`
		RejectedQueueFull uint64  `json:"rejected_queue_full"`
		RejectedTimeout   uint64  `json:"rejected_timeout"`
		RejectedUsual     uint64  `json:"rejected_usual"`
		StatementTimeouts uint64  `json:"statement_timeouts"`
		CallerGaveUp      uint64  `json:"caller_gave_up"`
	}{e.Arrivals, toMilli(e.Rate), toMilli(e.PeakRate), e.Held, e.HoldP50.String(), e.HoldP99.String(),
		e.PeakInUse, e.PeakDemand, e.Saturated.String(),
		e.Waited, e.RejectedQueueFull, e.RejectedTimeout, e.RejectedUsual, e.StatementTimeouts, e.CallerGaveUp})
}

func toMilli(rate float64) float64 { return math.Round(1000*rate) / 1000 }

// MarshalJSON writes snake_case, times as "50ms".
func (s CallSite) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Site     string `json:"site"`
		Stack    string `json:"stack"`
		Count    uint64 `json:"count"`
		HoldP50  string `json:"hold_p50"`
		HoldP99  string `json:"hold_p99"`
		HoldTime string `json:"hold_time"`
	}{s.Site, s.Stack, s.Count, s.HoldP50.String(), s.HoldP99.String(), s.HoldTime.String()})
}
