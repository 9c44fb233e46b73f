package debugpage

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// view is what the page shows of a registry.
type view struct {
	Registry string    `json:"registry"`
	At       time.Time `json:"at"`
	Pools    []pool    `json:"pools"`

	Plan partition.Plan `json:"plan"`
}

type pool struct {
	Name              workload.Name `json:"name"`
	MaxOpenConns      int           `json:"max_open_conns"`
	InUse             int           `json:"in_use"`
	Ending            int           `json:"ending"` // of those in use
	Idle              int           `json:"idle"`
	Free              int           `json:"free"` // permits without a connection
	PeakInUse         int           `json:"peak_in_use"`
	Paused            bool          `json:"paused"`
	SaturatedFor      seconds       `json:"saturated_for_seconds"`
	Waiting           int           `json:"waiting"`
	MaxWaiting        int           `json:"max_waiting"`
	Acquired          uint64        `json:"acquired"`
	RejectedQueueFull uint64        `json:"rejected_queue_full"`
	RejectedTimeout   uint64        `json:"rejected_acquire_timeout"`
	RejectedPaused    uint64        `json:"rejected_paused"`
	CallerGaveUp      uint64        `json:"callers_gave_up"`
	WaitP50           seconds       `json:"wait_p50_seconds"` // like the three below since Open
	WaitP99           seconds       `json:"wait_p99_seconds"`
	HoldP50           seconds       `json:"hold_p50_seconds"`
	HoldP99           seconds       `json:"hold_p99_seconds"`
	HoldMean          seconds       `json:"hold_mean_seconds"` // of late
	StatementTimeouts uint64        `json:"statement_timeouts"`
	EndedConfirmed    uint64        `json:"ended_confirmed"`
	EndedForced       uint64        `json:"ended_forced"`
	EndedUnknown      uint64        `json:"ended_unknown"`
	EndProblem        string        `json:"end_problem,omitempty"`
	Leaked            uint64        `json:"leaked"`
	Reclaimed         uint64        `json:"reclaimed"`
	OpenFailures      uint64        `json:"open_failures"`
	Enforcement       string        `json:"enforcement"` // empty: as in partition.Stats

	Settings partition.PoolConfig `json:"settings"`
	Holders  []holder             `json:"holders"`
	History  series               `json:"history"`
}

type holder struct {
	Tag      workload.Name `json:"tag"`
	Age      seconds       `json:"age_seconds"`
	Activity string        `json:"activity"`
	LongHeld bool          `json:"long_held"`
	Stack    string        `json:"stack,omitempty"`
}

// seconds is a number in JSON, and on the page what is left when nobody counts below a millisecond.
type seconds time.Duration

func (s seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

func (s seconds) String() string {
	if d := time.Duration(s); d >= time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return time.Duration(s).Round(10 * time.Microsecond).String()
}

// look is not one moment: the holders are those of just before the numbers.
func look(past *history) view {
	r, histories := past.registry, past.series()
	holders := make(map[workload.Name][]holder)
	for _, h := range r.Holders() {
		holders[h.Pool] = append(holders[h.Pool], holder{h.Tag, seconds(h.Age), string(h.Activity), h.LongHeld, h.Stack})
	}
	v := view{Registry: r.Name(), At: time.Now(), Pools: []pool{}, Plan: r.Plan()}
	for i, p := range past.pools {
		v.Pools = append(v.Pools, lookAt(p.Stats(), p.Times(), p.Config(), holders[p.Name()], histories[i]))
	}
	return v
}

func lookAt(s partition.Stats, t partition.Times, c partition.PoolConfig, holders []holder, past series) pool {
	c.DSN = "" // a server's address and user are nobody's business here
	if holders == nil {
		holders = []holder{} // in JSON a list, too
	}
	return pool{
		Name: s.Workload, MaxOpenConns: s.MaxOpenConns, InUse: s.InUse, Ending: s.Ending, Idle: s.Idle,
		Free: max(s.MaxOpenConns-s.InUse-s.Idle, 0), PeakInUse: s.PeakInUse, Paused: s.Paused,
		SaturatedFor: seconds(s.SaturatedFor), Waiting: s.Waiting, MaxWaiting: s.MaxWaiting,
		Acquired: s.Acquired, RejectedQueueFull: s.RejectedQueueFull, RejectedTimeout: s.RejectedTimeout,
		RejectedPaused: s.RejectedPaused, CallerGaveUp: s.CallerGaveUp, HoldMean: seconds(s.HoldMean),
		WaitP50: seconds(t.WaitP50), WaitP99: seconds(t.WaitP99), HoldP50: seconds(t.HoldP50), HoldP99: seconds(t.HoldP99),
		StatementTimeouts: s.StatementTimeouts, EndedConfirmed: s.EndedConfirmed, EndedForced: s.EndedForced,
		EndedUnknown: s.EndedUnknown, EndProblem: s.EndProblem, Leaked: s.Leaked, Reclaimed: s.Reclaimed,
		OpenFailures: s.OpenFailures, Enforcement: s.Enforcement,
		Settings: c, Holders: holders, History: past,
	}
}

// Working is how many permits are in use by callers.
func (p pool) Working() int { return max(p.InUse-p.Ending, 0) }

// Taken is where the bar's idle part begins.
func (p pool) Taken() int { return p.Working() + p.Ending }

// Width is that of the whole bar: of a pool that was just made smaller more may be out than its cap.
func (p pool) Width() int { return max(p.Taken()+p.Idle, p.MaxOpenConns, 1) }

// SettingsText is the settings as one line that may be broken.
func (p pool) SettingsText() string {
	return strings.NewReplacer(`"`, "", "{", "", "}", "", ",", ", ", ":", " ").Replace(p.Settings.String())
}
