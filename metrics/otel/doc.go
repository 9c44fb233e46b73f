// Package otel exports the pools of a [partition.Registry] through OpenTelemetry: the instruments that the semantic
// conventions name for connection pools, ours for what they lack, and events on the spans of callers who waited or were
// refused.
//
//	producer := otel.NewProducer()
//	reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(producer))
//	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
//	observer, err := otel.NewObserver(otel.WithMeterProvider(provider), otel.WithProducer(producer))
//	db, err := partition.Open("pgx", dsn, partition.WithName("orders"), partition.WithObserver(observer))
//	registry, _ := partition.RegistryOf(db)
//	_, err = observer.Watch(registry)
//
// One registry is one Observer. Every series has the attribute db.client.connection.pool.name: the registry's name, a
// slash and the workload, as in orders/oltp; the workload alone where the registry has no name.
//
// The histograms can come from two sources. A [Producer] hands over what the pools keep anyway, which costs a call nothing. An
// Observer without one, as where the provider is not yours to make, has the SDK record them, twice for each call: views and
// exemplars then work as for any other instrument, and a call pays more for its metrics than for the partition itself.
//
// Of the conventions: db.client.connection.count (db.client.connection.state is idle or used; a connection that is being
// dialed or closed is used), .max, .idle.max, .idle.min (always 0: no pool keeps connections that nobody needs),
// .pending_requests and .timeouts; the histograms .wait_time (of callers that got a connection: queue and dial together),
// .use_time and .create_time, in seconds. They are conventions in development, of version 1.43.0.
//
// Ours: sqlbulkhead.rejections by sqlbulkhead.reason, sqlbulkhead.statement_timeouts, and sqlbulkhead.saturated_time, the
// seconds for which every connection was in use. Of statements that were cut short, by their timeout or by a caller that gave
// up: sqlbulkhead.statements_ending, those whose end on the server is awaited, their permits in use until then;
// sqlbulkhead.statements_ended by sqlbulkhead.outcome, which is confirmed, forced or unknown; and sqlbulkhead.end_problem, 1
// while they cannot be ended there, of all pools of that server: why is in the log and in partition.Stats, not in an
// attribute. sqlbulkhead.leaks counts connections held for longer than LeakAfter, sqlbulkhead.reclaims those taken back: by
// MaxHold, or when the registry was drained.
package otel
