// Package prometheus exports the pools of a [partition.Registry] to Prometheus. client_golang's package has the same name,
// so one of the two is imported under another:
//
//	import (
//		prom "github.com/prometheus/client_golang/prometheus"
//		"github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus"
//	)
//
//	observer := prometheus.NewObserver()
//	db, err := partition.Open("pgx", dsn, partition.WithName("orders"), partition.WithObserver(observer))
//	registry, _ := partition.RegistryOf(db)
//	prom.MustRegister(prometheus.NewCollector(registry, observer))
//
// Every series has the labels db_name, the registry's name, and pool, the workload. The go_sql_ metrics have the names,
// help texts and types of client_golang's collectors.NewDBStatsCollector, one series per pool, so that dashboards made for
// that one go on working; take that one off the handle itself, whose statistics count virtual connections. All expired
// connections are in go_sql_max_lifetime_closed_total, since the pools do not tell lifetime and idle time apart. What that
// collector does not know is named sqlbulkhead_.
//
// All of it is read when it is scraped, and a call costs nothing more. sqlbulkhead_wait_seconds and sqlbulkhead_hold_seconds are
// the pools' own histograms, as [partition.Pool.Waits] and [partition.Pool.Holds] return them: since Open, of callers that got a
// connection, those who found one idle at once with a wait of 0. The observer sees dials and closed connections.
//
// Of statements that were cut short, by their timeout or by a caller that gave up, sqlbulkhead_statements_ending is how many
// are awaited to end on the server, their permits in use until then; sqlbulkhead_statements_ended_total has an outcome:
// confirmed, forced or unknown. sqlbulkhead_end_problem is 1 while they cannot be ended there, of all pools of that server;
// why is in the log and in partition.Stats, not in a label. sqlbulkhead_leaks_total counts connections held for longer than
// LeakAfter, sqlbulkhead_reclaims_total those taken back: by MaxHold, or when the registry was drained.
//
// Alerting and recording rules are in rules.yml beside this file, a Grafana dashboard in dashboard.json.
//
// # A plain handle beside
//
// client_golang refuses metrics of one name that differ in their label names. A service that also collects the
// statistics of a plain *sql.DB gives those the label, empty, which leaves its series as they were:
//
//	plain := prom.WrapRegistererWith(prom.Labels{"pool": ""}, prom.DefaultRegisterer)
//	plain.MustRegister(collectors.NewDBStatsCollector(legacy, "legacy"))
package prometheus
