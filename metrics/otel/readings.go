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

const reasonKey = attribute.Key("sqlbulkhead.reason")

func because(r partition.Reason) []attribute.KeyValue {
	return []attribute.KeyValue{reasonKey.String(string(r))}
}

// newReadings makes the instruments whose values the registry keeps: what it counts next becomes a line here.
func newReadings(m metric.Meter) ([]reading, error) {
	var errs [9]error
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
	rejections, err := m.Int64ObservableCounter("sqlbulkhead.rejections", metric.WithUnit("{rejection}"),
		metric.WithDescription("The number of acquires that the pool refused, by reason."))
	errs[6] = err
	statements, err := m.Int64ObservableCounter("sqlbulkhead.statement_timeouts", metric.WithUnit("{timeout}"),
		metric.WithDescription("The number of statements that exceeded their timeout."))
	errs[7] = err
	saturated, err := m.Float64ObservableCounter("sqlbulkhead.saturated_time", metric.WithUnit("s"),
		metric.WithDescription("How long every connection of the pool was in use."))
	errs[8] = err

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

		{count: rejections, attributes: because(partition.ReasonQueueFull), value: func(s *snapshot) int64 { return int64(s.RejectedQueueFull) }},
		{count: rejections, attributes: because(partition.ReasonAcquireTimeout), value: func(s *snapshot) int64 { return int64(s.RejectedTimeout) }},
		{count: rejections, attributes: because(partition.ReasonPaused), value: func(s *snapshot) int64 { return int64(s.RejectedPaused) }},
		{count: statements, value: func(s *snapshot) int64 { return int64(s.StatementTimeouts) }},
		{seconds: saturated, duration: func(s *snapshot) time.Duration { return s.SaturatedTime }},
	}, errors.Join(errs[:]...)
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
