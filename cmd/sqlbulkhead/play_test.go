package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// pretence is traffic without a database.
type pretence struct {
	login  func(ctx context.Context, user int) error
	report func(ctx context.Context) error
}

func (p pretence) Login(ctx context.Context, user int) error { return p.login(ctx, user) }
func (p pretence) Report(ctx context.Context) error          { return p.report(ctx) }

// taking is work that takes d, unless it is cut short.
func taking(ctx context.Context, d time.Duration) error {
	sleep(ctx, d)
	return ctx.Err()
}

func TestSlowLoginDoesNotDelayTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := make([]time.Duration, 5)
		begin := time.Now()
		p := pretence{login: func(ctx context.Context, user int) error {
			starts[user] = time.Since(begin)
			return taking(ctx, 450*time.Millisecond)
		}}
		var count tally
		play(t.Context(), p, scenario{duration: 500 * time.Millisecond, logins: 10}, &count)
		want := []time.Duration{0, 100, 200, 300, 400}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if !slices.Equal(starts, want) {
			t.Errorf("started at %v", starts)
		}
		if r := count.result(""); r.loginsOK != 5 || r.p50 != 450*time.Millisecond || r.max != r.p50 {
			t.Errorf("%+v", r)
		}
		if took := time.Since(begin); took != 850*time.Millisecond {
			t.Errorf("returned after %v, before or long after the last login", took)
		}
	})
}

func TestNoActIsWithoutLogins(t *testing.T) {
	for args, want := range map[string][]int{ // of the three acts, of which the first takes half as long
		"--duration 100ms --logins 1":    {1, 1, 1},
		"--duration 100ms --logins 10":   {1, 1, 1},
		"--duration 150ms --logins 10":   {1, 2, 2},
		"--duration 100ms --logins 7000": {350, 700, 700},
		"--duration 1m10s --logins 1":    {35, 70, 70},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := parseFlags(strings.Fields(args), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			p := pretence{login: func(context.Context, int) error { return nil }}
			var played []int
			for _, st := range s.stages() {
				for _, a := range st.acts {
					var count tally
					play(t.Context(), p, scenario{duration: a.duration, logins: a.logins}, &count)
					played = append(played, count.soFar().loginsOK)
				}
			}
			if !slices.Equal(played, want) {
				t.Errorf("%s: %d logins, want %d", args, played, want)
			}
		})
	}
}

func TestWaitForAConnectionCountsInTheLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connection := make(chan struct{}, 1)
		p := pretence{login: func(ctx context.Context, user int) error {
			connection <- struct{}{}
			defer func() { <-connection }()
			return taking(ctx, 150*time.Millisecond)
		}}
		var count tally
		play(t.Context(), p, scenario{duration: 300 * time.Millisecond, logins: 10}, &count)
		if r := count.result(""); r.p50 != 200*time.Millisecond || r.max != 250*time.Millisecond {
			t.Errorf("p50 %v, max %v", r.p50, r.max)
		}
	})
}

func TestLoginGivesUpWhenItsPatienceEndsAndIsNotBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pretence{login: func(ctx context.Context, user int) error { return taking(ctx, time.Hour) }}
		var count tally
		play(t.Context(), p, scenario{duration: time.Second, logins: 5}, &count)
		r := count.result("")
		if r.loginsFailed != 5 || r.loginsBroken != 0 || r.p50 != loginPatience || r.max != loginPatience {
			t.Errorf("%+v", r)
		}
	})
}

func TestEachKindOfWorkCarriesItsTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var login, report workload.Name
		p := pretence{
			login:  func(ctx context.Context, _ int) error { login, _ = workload.From(ctx); return nil },
			report: func(ctx context.Context) error { report, _ = workload.From(ctx); return taking(ctx, time.Hour) },
		}
		var count tally
		play(t.Context(), p, scenario{duration: time.Second, logins: 1, analysts: 1}, &count)
		if login != workload.OLTP || report != workload.Reporting {
			t.Errorf("logins as %q, reports as %q", login, report)
		}
	})
}

func TestReportThatIsNotDoneByTheEndDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, reports := time.Now(), 0
		p := pretence{
			login:  func(ctx context.Context, _ int) error { return taking(ctx, 900*time.Millisecond) },
			report: func(ctx context.Context) error { reports++; return taking(ctx, 400*time.Millisecond) },
		}
		var count tally
		play(t.Context(), p, scenario{duration: time.Second, logins: 10, analysts: 1}, &count)
		// One ends between 475 and 525ms, the next one between 950 and 1050ms;
		// the third is cut off when the last login is back, at 1.8s.
		c := count.soFar()
		if c.reportsOK < 1 || c.reportsOK > 2 || c.reportsBroken != 0 || reports < 3 {
			t.Errorf("%d reports, of which %+v", reports, c)
		}
		if took := time.Since(begin); took != 1800*time.Millisecond {
			t.Errorf("returned after %v", took)
		}
	})
}

func TestAnalystBacksOffWhenTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pretence{
			login:  func(context.Context, int) error { return nil },
			report: func(context.Context) error { return &partition.AcquireError{Reason: partition.ReasonQueueFull} },
		}
		var count tally
		play(t.Context(), p, scenario{duration: 10 * time.Second, logins: 1, analysts: 1}, &count)
		if n := count.soFar().reportsRejected; n < 80 || n > 133 { // each 75 to 125ms after the last
			t.Errorf("%d attempts in 10s", n)
		}
	})
}

func TestNothingCountsAfterAnInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(2450*time.Millisecond, interrupt)
		begin := time.Now()
		p := pretence{
			login:  func(ctx context.Context, _ int) error { return taking(ctx, 500*time.Millisecond) },
			report: func(ctx context.Context) error { return taking(ctx, time.Hour) },
		}
		var count tally
		play(ctx, p, scenario{duration: time.Minute, logins: 10, analysts: 3}, &count)
		if took := time.Since(begin); took != 2450*time.Millisecond {
			t.Errorf("returned after %v", took)
		}
		if c := count.soFar(); c != (counts{loginsOK: 20}) {
			t.Errorf("%+v", c)
		}
	})
}
