package otel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// The events on a caller's span.
const (
	eventWaited  = "sqlbulkhead.acquire.waited"
	eventRefused = "sqlbulkhead.acquire.refused"
)

// tellSpan adds an event to the caller's span, if it is recorded: the time that is spent before a statement is sent, and
// that no span of a driver shows. The text of an error stays out; drivers write all kinds of things into it.
func tellSpan(ctx context.Context, p *watched, e partition.AcquireEvent) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	name, attributes := eventWaited, []attribute.KeyValue{p.name, attribute.Float64("sqlbulkhead.wait_time", e.Waited.Seconds())}
	if e.Err != nil {
		name, attributes = eventRefused, append(attributes, refusal(e.Err)...)
	}
	span.AddEvent(name, trace.WithAttributes(attributes...))
}

// refusal is why there was no connection, and how full the pool was. The reason is "error" for what is neither the
// pool's nor the caller's doing: a dial that failed, or a handle that is closed.
func refusal(err error) []attribute.KeyValue {
	var e *partition.AcquireError
	if !errors.As(err, &e) {
		return []attribute.KeyValue{reasonKey.String("error")}
	}
	return []attribute.KeyValue{
		reasonKey.String(string(e.Reason)),
		attribute.Int("sqlbulkhead.in_use", e.InUse), attribute.Int("sqlbulkhead.max_open_conns", e.MaxOpenConns),
		attribute.Int("sqlbulkhead.waiting", e.Waiting), attribute.Int("sqlbulkhead.max_waiting", e.MaxWaiting),
	}
}
