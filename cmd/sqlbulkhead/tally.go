package main

import (
	"errors"
	"sync"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/report"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// counts is what became of the work so far.
type counts struct {
	loginsOK, loginsFailed        int
	reportsOK, reportsRejected    int
	loginsBroken, reportsBroken   int   // by errors that have nothing to do with a pool
	firstLoginErr, firstReportErr error // of those
}

// tally counts while an arrangement is played.
type tally struct {
	mu     sync.Mutex // guards everything below
	counts counts
	logins []report.Login
}

// login counts a login, which was due at that time of the day. late says that it was given up; that and a rejection
// are failures of the kind that the demo is about, all others are broken too.
func (t *tally) login(at, took time.Duration, err error, late bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logins = append(t.logins, report.Login{At: at, Took: took, Failed: err != nil})
	if err == nil {
		t.counts.loginsOK++
		return
	}
	t.counts.loginsFailed++
	if !late && !errors.Is(err, partition.ErrRejected) {
		note(&t.counts.loginsBroken, &t.counts.firstLoginErr, err)
	}
}

func (t *tally) report(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.counts.reportsOK++
	case errors.Is(err, partition.ErrRejected):
		t.counts.reportsRejected++
	default:
		note(&t.counts.reportsBroken, &t.counts.firstReportErr, err)
	}
}

func note(n *int, first *error, err error) {
	if *n++; *n == 1 {
		*first = err
	}
}

// soFar is a snapshot for the progress.
func (t *tally) soFar() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// result is an arrangement that was played.
type result struct {
	name string
	counts
	p50, p99, max time.Duration // of all logins, those that failed included
	logins        []report.Login
}

func (c counts) attempts() int { return c.loginsOK + c.loginsFailed }

func (t *tally) result(name string) result {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := report.Summarise(t.logins, nil)
	return result{
		name: name, counts: t.counts, logins: t.logins,
		p50: time.Duration(all.P50), p99: time.Duration(all.P99), max: time.Duration(all.Max),
	}
}
