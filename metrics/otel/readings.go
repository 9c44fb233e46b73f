package otel

import (
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/dbconv"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// snapshot is a pool at the moment when metrics are collected.
type snapshot struct {
	partition.Stats
	config partition.PoolConfig
}

// reading is one series of each pool, of an instrument that counts or of one that measures time.
type reading struct {
	count metric.Int64Observable
	value func(*snapshot) int64

	seconds  metric.Float64Observable
	duration func(*snapshot) time.Duration

	attributes []attribute.KeyValue // besides the pool's name
}

const (
	reasonKey  = attribute.Key("sqlbulkhead.reason")
	outcomeKey = attribute.Key("sqlbulkhead.outcome")
)

func because(r partition.Reason) []attribute.KeyValue {
	return []attribute.KeyValue{reasonKey.String(string(r))}
}

func ended(o partition.EndOutcome) []attribute.KeyValue {
	return []attribute.KeyValue{outcomeKey.String(string(o))}
}

// newReadings makes the instruments whose values the registry keeps.
func newReadings(m metric.Meter) ([]reading, error) {
	conventional, err := newConventional(m)
	ours := &meter{Meter: m}
	readings := append(conventional, ours.readings()...)
	return readings, errors.Join(append(ours.errs, err)...)
}

// newConventional makes those that the conventions name.
func newConventional(m metric.Meter) ([]reading, error) {
	var errs [6]error
	count, err := dbconv.NewClientConnectionCountObservable(m)
	errs[0] = err
	limit, err := dbconv.NewClientConnectionMaxObservable(m)
	errs[1] = err
	idleMax, err := dbconv.NewClientConnectionIdleMaxObservable(m)
	errs[2] = err
	idleMin, err := dbconv.NewClientConnectionIdleMinObservable(m)
	errs[3] = err
	pending, err := dbconv.NewClientConnectionPendingRequestsObservable(m)
	errs[4] = err
	timeouts, err := dbconv.NewClientConnectionTimeoutsObservable(m)
	errs[5] = err

	idle := []attribute.KeyValue{semconv.DBClientConnectionStateIdle}
	used := []attribute.KeyValue{semconv.DBClientConnectionStateUsed}
	return []reading{
		{count: count.Inst(), attributes: idle, value: func(s *snapshot) int64 { return int64(s.Idle) }},
		{count: count.Inst(), attributes: used, value: func(s *snapshot) int64 { return int64(s.InUse) }},
		{count: limit.Inst(), value: func(s *snapshot) int64 { return int64(s.MaxOpenConns) }},
		{count: idleMax.Inst(), value: func(s *snapshot) int64 { return int64(s.config.MaxIdleConns) }},
		{count: idleMin.Inst(), value: func(*snapshot) int64 { return 0 }},
		{count: pending.Inst(), value: func(s *snapshot) int64 { return int64(s.Waiting) }},
		{count: timeouts.Inst(), value: func(s *snapshot) int64 { return int64(s.RejectedTimeout) }},
	}, errors.Join(errs[:]...)
}

// meter makes the instruments that the conventions lack, and keeps what it was refused.
type meter struct {
	metric.Meter
	errs []error
}

// readings are ours: what the registry counts next becomes a line here.
func (m *meter) readings() []reading {
	rejections := m.counter("sqlbulkhead.rejections", "{rejection}", "The number of acquires that the pool refused, by reason.")
	statements := m.counter("sqlbulkhead.statement_timeouts", "{timeout}", "The number of statements that exceeded their timeout.")
	endings := m.counter("sqlbulkhead.statements_ended", "{statement}",
		"The number of statements that were cut short, by what is known of their end on the server.")
	leaks := m.counter("sqlbulkhead.leaks", "{connection}", "The number of connections that were held for longer than LeakAfter.")
	reclaims := m.counter("sqlbulkhead.reclaims", "{connection}", "The number of connections that were taken back from their holder.")
	ending, err := m.Int64ObservableUpDownCounter("sqlbulkhead.statements_ending", metric.WithUnit("{statement}"),
		metric.WithDescription("The number of statements that were cut short and whose end on the server is awaited."))
	m.errs = append(m.errs, err)
	problem, err := m.Int64ObservableGauge("sqlbulkhead.end_problem", metric.WithUnit("1"),
		metric.WithDescription("1 while statements cannot be ended on the server, else 0. The log says why."))
	m.errs = append(m.errs, err)
	saturated, err := m.Float64ObservableCounter("sqlbulkhead.saturated_time", metric.WithUnit("s"),
		metric.WithDescription("How long every connection of the pool was in use."))
	m.errs = append(m.errs, err)
	return []reading{
		{count: rejections, attributes: because(partition.ReasonQueueFull), value: func(s *snapshot) int64 { return int64(s.RejectedQueueFull) }},
		{count: rejections, attributes: because(partition.ReasonAcquireTimeout), value: func(s *snapshot) int64 { return int64(s.RejectedTimeout) }},
		{count: rejections, attributes: because(partition.ReasonPaused), value: func(s *snapshot) int64 { return int64(s.RejectedPaused) }},
		{count: statements, value: func(s *snapshot) int64 { return int64(s.StatementTimeouts) }},
		{count: ending, value: func(s *snapshot) int64 { return int64(s.Ending) }},
		{count: endings, attributes: ended(partition.EndConfirmed), value: func(s *snapshot) int64 { return int64(s.EndedConfirmed) }},
		{count: endings, attributes: ended(partition.EndForced), value: func(s *snapshot) int64 { return int64(s.EndedForced) }},
		{count: endings, attributes: ended(partition.EndUnknown), value: func(s *snapshot) int64 { return int64(s.EndedUnknown) }},
		{count: problem, value: func(s *snapshot) int64 { return boolean(s.EndProblem != "") }},
		{count: leaks, value: func(s *snapshot) int64 { return int64(s.Leaked) }},
		{count: reclaims, value: func(s *snapshot) int64 { return int64(s.Reclaimed) }},
		{seconds: saturated, duration: func(s *snapshot) time.Duration { return s.SaturatedTime }},
	}
}

func (m *meter) counter(name, unit, description string) metric.Int64Observable {
	i, err := m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.errs = append(m.errs, err)
	return i
}

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// instrumentsOf returns each instrument, as often as it has readings.
func instrumentsOf(readings []reading) []metric.Observable {
	var list []metric.Observable
	for _, r := range readings {
		if r.count != nil {
			list = append(list, r.count)
		} else {
			list = append(list, r.seconds)
		}
	}
	return list
}
