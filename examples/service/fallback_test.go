package main

import (
	"net/http"
	"testing"
	"time"
)

func TestLastGoodReportIsServedWhileThePoolIsFull(t *testing.T) {
	t.Parallel()
	r := setup(t)
	fresh := r.mustReport(false)
	giveBack := r.fillReports()
	if stale := r.mustReport(true); !stale.AsOf.Equal(fresh.AsOf) {
		t.Errorf("the report of %v says %v", fresh.AsOf, stale.AsOf)
	}
	giveBack()
	if newer := r.mustReport(false); !newer.AsOf.After(fresh.AsOf) {
		t.Errorf("the fallback of %v outlived its reason: %v", fresh.AsOf, newer.AsOf)
	}
}

func TestLastGoodReportIsServedBehindAnOpenBreaker(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.mustReport(false)
	r.store.report = "SELECT buyer, cents FROM no_such_table"
	for range 2 * tripAfter {
		r.mustReport(true)
	}
}

func TestReportThatIsTooOldIsNotServed(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.mustReport(false)
	r.fillReports()
	r.last.now = func() time.Time { return time.Now().Add(staleAfter + time.Second) }
	r.mustBeUnavailable()
}

func TestRefusedLoginHasNoFallback(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.mustLogin()
	r.pause("oltp")
	if w := r.send("POST", "/login", "user=ada"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", w.Code)
	}
}
