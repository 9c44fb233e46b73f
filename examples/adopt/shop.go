package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sqlbulkhead/sqlbulkhead/debugpage"
	"github.com/sqlbulkhead/sqlbulkhead/httpbulkhead"
	"github.com/sqlbulkhead/sqlbulkhead/metrics/prometheus"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

type shop struct {
	db      *sql.DB
	reg     *partition.Registry
	metrics *prom.Registry
}

// open is where sql.Open was.
func open(driver, dsn, file string) (*shop, error) {
	options, err := settings(file)
	if err != nil {
		return nil, err
	}
	observer := prometheus.NewObserver()
	db, err := partition.Open(driver, dsn, append(options, partition.WithObserver(observer))...)
	if err != nil {
		return nil, err
	}
	reg, _ := partition.RegistryOf(db)
	s := &shop{db, reg, prom.NewRegistry()}
	return s, s.metrics.Register(prometheus.NewCollector(reg, observer))
}

// settings come from the code, then from the file, then from the environment.
func settings(file string) ([]partition.Option, error) {
	options := []partition.Option{
		partition.WithName("shop"),
		partition.WithBudget(8), // was: db.SetMaxOpenConns(8)
		partition.WithMode(partition.Observe),
	}
	config, err := load(file)
	if err != nil {
		return nil, err
	}
	env, err := partition.ConfigFromEnv("DB") // DB_MODE, DB_REPORTING_MAX_OPEN_CONNS, …
	if err != nil {
		return nil, err
	}
	return append(options, partition.WithConfig(config.Merge(env))), nil
}

// load reads the file, if there is one.
func load(file string) (config partition.Config, err error) {
	if file == "" {
		return config, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return config, err
	}
	defer f.Close()
	if config, err = partition.LoadConfig(f); err != nil {
		return config, fmt.Errorf("%s: %w", file, err)
	}
	return config, nil
}

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", s.login)
	mux.Handle("GET /report", httpbulkhead.Tag(workload.Reporting)(http.HandlerFunc(s.report)))
	mux.HandleFunc("GET /export", s.export) // slow, and forgotten

	mux.HandleFunc("GET /plan", s.plan)
	mux.HandleFunc("GET /plan/config", s.planConfig)
	mux.HandleFunc("GET /untagged", s.untagged)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{}))
	mux.Handle("/debug/bulkhead/", debugpage.Handler(s.reg))
	return mux
}

func (s *shop) login(w http.ResponseWriter, r *http.Request) {
	var one int
	if err := s.db.QueryRowContext(r.Context(), "SELECT 1").Scan(&one); err != nil {
		fail(w, err)
		return
	}
	fmt.Fprintln(w, "welcome", r.PostFormValue("user"))
}

func (s *shop) report(w http.ResponseWriter, r *http.Request) { s.lines(w, r, 20) }

func (s *shop) export(w http.ResponseWriter, r *http.Request) { s.lines(w, r, 10) }

const numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20) SELECT n FROM c"

// lines takes its time: with each line that it writes it holds the connection for 10 ms more.
func (s *shop) lines(w http.ResponseWriter, r *http.Request, n int) {
	rows, err := s.db.QueryContext(r.Context(), numbers)
	if err != nil {
		fail(w, err)
		return
	}
	defer rows.Close()
	for number := 0; number < n && rows.Next(); {
		if err := rows.Scan(&number); err != nil {
			fail(w, err)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Fprintln(w, n, "lines")
}

func fail(w http.ResponseWriter, err error) {
	if httpbulkhead.Unavailable(w, err) { // 503 and Retry-After
		return
	}
	http.Error(w, "the database failed", http.StatusInternalServerError)
}

func (s *shop) plan(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.reg.Plan()) }

func (s *shop) planConfig(w http.ResponseWriter, _ *http.Request) {
	json.NewEncoder(w).Encode(s.reg.Plan().Config())
}

func (s *shop) untagged(w http.ResponseWriter, _ *http.Request) {
	for _, site := range s.reg.Untagged() {
		fmt.Fprintln(w, site.Count, site.HoldP99, site.Site)
	}
}
