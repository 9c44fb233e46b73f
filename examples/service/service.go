package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"strconv"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/httpbulkhead"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// staleAfter is how old a report may be that is served for want of a new one.
const staleAfter = 15 * time.Minute

type service struct {
	store           store
	logins, reports *guarded
	last            *fallback[[]line]
}

func newService(db *sql.DB) *service {
	return &service{
		store:   newStore(db),
		logins:  newGuarded("logins"),
		reports: newGuarded("reports"),
		last:    newFallback[[]line](),
	}
}

// guarded is what stands around each call of the database, outside its bulkhead: retries, and inside them the breaker,
// so that an attempt which the breaker stops is the last.
type guarded struct {
	retries retries
	breaker *breaker
}

func newGuarded(name string) *guarded {
	return &guarded{newRetries(newBudget()), newBreaker(name)}
}

func (g *guarded) do(ctx context.Context, call func() error) error {
	return g.retries.do(ctx, func() error {
		_, err := g.breaker.Execute(func() (struct{}, error) { return struct{}{}, call() })
		return err
	})
}

// routes is where the workload is chosen: by what is asked for, not by who asks.
func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", s.login) // untagged: oltp
	mux.Handle("GET /report", httpbulkhead.Tag(workload.Reporting)(http.HandlerFunc(s.report)))
	mux.HandleFunc("GET /ready", s.ready)
	return mux
}

func (s *service) login(w http.ResponseWriter, r *http.Request) {
	user, known := r.PostFormValue("user"), false
	err := s.logins.do(r.Context(), func() (err error) {
		known, err = s.store.Login(r.Context(), user)
		return err
	})
	switch {
	case err != nil:
		fail(w, err)
	case !known:
		http.Error(w, "no such user", http.StatusUnauthorized)
	default:
		reply(w, map[string]string{"user": user})
	}
}

// reportReply says how old a report is, so that nobody takes a stale one for news.
type reportReply struct {
	AsOf  time.Time `json:"as_of"`
	Stale bool      `json:"stale"`
	Lines []line    `json:"lines"`
}

// report serves the last good report where there is no new one. A login has no such fallback: whether somebody may
// come in is no matter of yesterday.
func (s *service) report(w http.ResponseWriter, r *http.Request) {
	var lines []line
	err := s.reports.do(r.Context(), func() (err error) {
		lines, err = s.store.Report(r.Context())
		return err
	})
	if err == nil {
		reply(w, reportReply{s.last.keep(lines), false, lines})
		return
	}
	if old, at, ok := s.last.within(staleAfter); ok {
		log.Printf("report: serving that of %v: %v", at.Format(time.TimeOnly), err)
		reply(w, reportReply{at, true, old})
		return
	}
	fail(w, err)
}

// ready asks the server past the pools: one that is full is no reason to be taken out of rotation.
func (s *service) ready(w http.ResponseWriter, r *http.Request) {
	reg, ok := partition.RegistryOf(s.store.db)
	if !ok || reg.Health(r.Context()) != nil {
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
	}
}

// fail says what became of a request, and of the client's next one.
func fail(w http.ResponseWriter, err error) {
	var refused *partition.AcquireError
	switch {
	case httpbulkhead.Unavailable(w, err): // this pool is full
	case isOpen(err):
		w.Header().Set("Retry-After", strconv.Itoa(int(openFor/time.Second)))
		http.Error(w, "unavailable, try again later", http.StatusServiceUnavailable)
	case errors.As(err, &refused): // the client's own context ended while it waited
		http.Error(w, "gave up waiting", http.StatusServiceUnavailable)
	case errors.Is(err, stmttimeout.ErrExceeded): // it ran, and may have taken effect
		http.Error(w, "took too long", http.StatusGatewayTimeout)
	default:
		log.Printf("internal error: %v", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		log.Printf("reply: %v", err) // the client has gone
	}
}
