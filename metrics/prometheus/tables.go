package prometheus

import (
	"math"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// snapshot is a pool at the moment of a scrape.
type snapshot struct {
	partition.Stats
	config partition.PoolConfig
	seen   *observed
}

const (
	gauge   = prom.GaugeValue
	counter = prom.CounterValue
)

// value is one series of each pool. Rows of the same name differ in the value of their label alone.
type value struct {
	name, help string
	kind       prom.ValueType
	label      string // "" where a pool has but one series of the name
	labelValue string
	read       func(s *snapshot) float64 // NaN where there is nothing to be said
}

// values is every series but the histograms: what the registry counts next becomes a row here. The rows that
// client_golang has as well keep its help texts to the letter, since a registry refuses another one for the same name.
var values = []value{
	{"go_sql_max_open_connections", "Maximum number of open connections to the database.", gauge, "", "",
		func(s *snapshot) float64 { return float64(s.MaxOpenConns) }},
	{"go_sql_open_connections", "The number of established connections both in use and idle.", gauge, "", "",
		func(s *snapshot) float64 { return float64(s.Open) }},
	{"go_sql_in_use_connections", "The number of connections currently in use.", gauge, "", "",
		func(s *snapshot) float64 { return float64(s.InUse) }},
	{"go_sql_idle_connections", "The number of idle connections.", gauge, "", "",
		func(s *snapshot) float64 { return float64(s.Idle) }},
	{"go_sql_wait_count_total", "The total number of connections waited for.", counter, "", "",
		func(s *snapshot) float64 { return float64(s.Waited) }},
	{"go_sql_wait_duration_seconds_total", "The total time blocked waiting for a new connection.", counter, "", "",
		func(s *snapshot) float64 { return s.WaitTime.Seconds() }},
	{"go_sql_max_idle_closed_total", "The total number of connections closed due to SetMaxIdleConns.", counter, "", "",
		func(s *snapshot) float64 { return float64(s.seen.closes(partition.CloseSurplus)) }},
	// The pools do not tell the two kinds of expiry apart: all of it stands in the second, so that a sum is right.
	{"go_sql_max_idle_time_closed_total", "The total number of connections closed due to SetConnMaxIdleTime.", counter, "", "",
		func(*snapshot) float64 { return 0 }},
	{"go_sql_max_lifetime_closed_total", "The total number of connections closed due to SetConnMaxLifetime.", counter, "", "",
		func(s *snapshot) float64 { return float64(s.seen.closes(partition.CloseExpired)) }},

	{"sqlbulkhead_queue_depth", "Callers that wait for a connection now.", gauge, "", "",
		func(s *snapshot) float64 { return float64(s.Waiting) }},
	{"sqlbulkhead_queue_limit", "Callers that may wait; the next one is rejected.", gauge, "", "",
		func(s *snapshot) float64 { return float64(s.MaxWaiting) }},
	{"sqlbulkhead_acquire_timeout_seconds", "How long a caller may wait. Missing where callers never queue.", gauge, "", "",
		func(s *snapshot) float64 { return positive(s.config.AcquireTimeout.Seconds()) }},
	{"sqlbulkhead_paused", "1 while an operator has paused the pool, else 0.", gauge, "", "",
		func(s *snapshot) float64 { return boolean(s.Paused) }},
	{"sqlbulkhead_peak_in_use_connections", "The most connections that were in use at once since the start.", gauge, "", "",
		func(s *snapshot) float64 { return float64(s.PeakInUse) }},
	{"sqlbulkhead_saturated_seconds_total", "How long every connection was in use.", counter, "", "",
		func(s *snapshot) float64 { return s.SaturatedTime.Seconds() }},

	{"sqlbulkhead_acquires_total", "Acquires that got their permit.", counter, "", "",
		func(s *snapshot) float64 { return float64(s.Acquired) }},
	{"sqlbulkhead_rejections_total", rejections, counter, "reason", string(partition.ReasonQueueFull),
		func(s *snapshot) float64 { return float64(s.RejectedQueueFull) }},
	{"sqlbulkhead_rejections_total", rejections, counter, "reason", string(partition.ReasonAcquireTimeout),
		func(s *snapshot) float64 { return float64(s.RejectedTimeout) }},
	{"sqlbulkhead_rejections_total", rejections, counter, "reason", string(partition.ReasonPaused),
		func(s *snapshot) float64 { return float64(s.RejectedPaused) }},
	{"sqlbulkhead_callers_gave_up_total", "Acquires that ended because the caller's own context did.", counter, "", "",
		func(s *snapshot) float64 { return float64(s.CallerGaveUp) }},
	{"sqlbulkhead_statement_timeouts_total", "Statements that exceeded their timeout.", counter, "", "",
		func(s *snapshot) float64 { return float64(s.StatementTimeouts) }},

	{"sqlbulkhead_statements_ending", "Statements that were cut short and whose end on the server is awaited.", gauge, "", "",
		func(s *snapshot) float64 { return float64(s.Ending) }},
	{"sqlbulkhead_statements_ended_total", endings, counter, "outcome", string(partition.EndConfirmed),
		func(s *snapshot) float64 { return float64(s.EndedConfirmed) }},
	{"sqlbulkhead_statements_ended_total", endings, counter, "outcome", string(partition.EndForced),
		func(s *snapshot) float64 { return float64(s.EndedForced) }},
	{"sqlbulkhead_statements_ended_total", endings, counter, "outcome", string(partition.EndUnknown),
		func(s *snapshot) float64 { return float64(s.EndedUnknown) }},
	// The text would make a series of every error; the log has it.
	{"sqlbulkhead_end_problem", "1 while statements cannot be ended on the server, else 0. The log says why.", gauge, "", "",
		func(s *snapshot) float64 { return boolean(s.EndProblem != "") }},
	{"sqlbulkhead_leaks_total", "Connections that were held for longer than LeakAfter.", counter, "", "",
		func(s *snapshot) float64 { return float64(s.Leaked) }},
	{"sqlbulkhead_reclaims_total", "Connections that were taken back from their holder.", counter, "", "",
		func(s *snapshot) float64 { return float64(s.Reclaimed) }},

	{"sqlbulkhead_connections_opened_total", "Connections that were opened.", counter, "", "",
		func(s *snapshot) float64 { return float64(s.Opened) }},
	{"sqlbulkhead_dial_failures_total", "Connections that could not be opened, or not set up.", counter, "", "",
		func(s *snapshot) float64 { return float64(s.OpenFailures) }},
	{"sqlbulkhead_connections_closed_total", closings, counter, "reason", string(partition.CloseBad),
		func(s *snapshot) float64 { return float64(s.seen.closes(partition.CloseBad)) }},
	{"sqlbulkhead_connections_closed_total", closings, counter, "reason", string(partition.CloseExpired),
		func(s *snapshot) float64 { return float64(s.seen.closes(partition.CloseExpired)) }},
	{"sqlbulkhead_connections_closed_total", closings, counter, "reason", string(partition.CloseSurplus),
		func(s *snapshot) float64 { return float64(s.seen.closes(partition.CloseSurplus)) }},
	{"sqlbulkhead_connections_closed_total", closings, counter, "reason", string(partition.CloseShutdown),
		func(s *snapshot) float64 { return float64(s.seen.closes(partition.CloseShutdown)) }},
	{"sqlbulkhead_connections_closed_total", closings, counter, "reason", string(partition.CloseReclaimed),
		func(s *snapshot) float64 { return float64(s.seen.closes(partition.CloseReclaimed)) }},
}

const (
	rejections = "Acquires that the pool refused, by reason."
	closings   = "Connections that were closed, by reason."
	endings    = "Statements that were cut short, by what is known of their end on the server."
)

// histogramRow is a histogram of each pool.
type histogramRow struct {
	name, help string
	bounds     func(*Observer) bounds
	of         func(watched, bounds) durations
}

var histograms = []histogramRow{
	{"sqlbulkhead_wait_seconds", "How long callers that got a connection waited for it: queue and dial together.",
		func(o *Observer) bounds { return o.wait },
		func(w watched, b bounds) durations { return ofPool(w.pool.Waits(), b) }},
	{"sqlbulkhead_hold_seconds", "How long connections were held: by a query, a transaction, a *sql.Conn.",
		func(o *Observer) bounds { return o.hold },
		func(w watched, b bounds) durations { return ofPool(w.pool.Holds(), b) }},
	{"sqlbulkhead_dial_seconds", "How long it took to open a connection and set it up.",
		func(o *Observer) bounds { return o.dial },
		func(w watched, _ bounds) durations { return w.seen.dial.read() }},
}

func ofPool(h partition.Histogram, b bounds) durations {
	return durations{h.AtMost(b.limits), h.Count, h.Sum}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func positive(v float64) float64 {
	if v > 0 {
		return v
	}
	return math.NaN()
}
