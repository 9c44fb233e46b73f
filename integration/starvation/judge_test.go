package starvation

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/report"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

const ms = time.Millisecond

// fine is the outcome of a day with a fault, in partitions that hold.
func fine() outcome {
	o := outcome{
		scene: &scene{pools: standard, up: time.Now(), calls: map[workload.Name]*calls{
			workload.Reporting: {served: 6, refused: 400, longest: 2 * time.Second, patience: 60 * ms, recovered: 100 * ms},
		}},
		sessions: total,
	}
	o.act.Summary = report.Summary{Logins: 400, P99: report.Millis(3 * ms)}
	o.expect(report.Summary{Logins: 300, P99: report.Millis(2 * ms)})
	return o
}

// suffering is that of the one pool.
func suffering() outcome {
	o := outcome{scene: &scene{}, sessions: total}
	o.act.Summary = report.Summary{Logins: 400, Failed: 300, P99: report.Millis(time.Second)}
	return o
}

func TestDayHoldsWhereTheOnePoolSuffersAndPartitionsDoNot(t *testing.T) {
	t.Parallel()
	text, passed := verdict(suffering(), fine(), 1)
	if !passed || !strings.Contains(text, "300 of 400") || !strings.Contains(text, "0 of 400") {
		t.Error(text)
	}
}

func TestOnePoolThatDoesNotSufferProvesNothing(t *testing.T) {
	t.Parallel()
	calm := suffering()
	calm.act.Summary = report.Summary{Logins: 400, Failed: 39, P99: report.Millis(50 * ms)}
	if text, passed := verdict(calm, fine(), 1); passed || !strings.Contains(text, "proves nothing") {
		t.Error(text)
	}
	calm.sessions = 2*total + 1
	if text, passed := verdict(calm, fine(), 1); !passed {
		t.Errorf("so many sessions on the server are suffering: %s", text)
	}
}

func TestWhatIsWrongInThePartitionsIsNamed(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*outcome){
		"2 logins failed while the server was alive, the first with: no such thing": func(o *outcome) {
			o.act.Summary.Failed = 2
			o.logins = []login{{report.Login{}, nil}, {report.Login{Failed: true}, errors.New("no such thing")}}
		},
		"1 logins failed before anything happened": func(o *outcome) { o.quiet.Failed = 1 },
		"21 sessions at once":                      func(o *outcome) { o.sessions++ },
		"permits did not come back: batch":         func(o *outcome) { o.left = "batch" },
		"nobody was refused":                       func(o *outcome) { o.calls[workload.Reporting].refused = 0 },
		"a call in reporting took 1m0s":            func(o *outcome) { o.calls[workload.Reporting].longest = time.Minute },
		"refused after 3s, its acquire timeout is 50ms": func(o *outcome) {
			o.calls[workload.Reporting].patience = 3 * time.Second
		},
		"reporting served 3 calls with its 3 connections, and none after they had leaked": func(o *outcome) {
			o.pools, o.calls[workload.Reporting].served = reclaiming, 3
		},
		"3 logins failed later than 2s after": func(o *outcome) {
			o.act.Summary.Failed, o.spans = 3, []report.Span{{}}
		},
		"did not serve any more":     func(o *outcome) { o.calls[workload.Reporting].recovered = 0 },
		"served again only 2.50 s":   func(o *outcome) { o.calls[workload.Reporting].recovered = 2500 * ms },
		"5.01 ms, over its bound of": func(o *outcome) { o.act.Summary.P99 = report.Millis(5010 * time.Microsecond) },
	} {
		o := fine()
		spoil(&o)
		if text, passed := verdict(suffering(), o, 1); passed || !strings.Contains(text, want) {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}

func TestOnlyTimesGetAnotherAttempt(t *testing.T) {
	t.Parallel()
	o := fine()
	o.act.Summary.P99, o.calls[workload.Reporting].recovered = report.Millis(time.Second), 3*time.Second
	o.act.Summary.Failed, o.spans = 3, []report.Span{{}}
	if len(o.wrong()) != 0 || len(o.late()) != 3 {
		t.Errorf("wrong %q, late %q", o.wrong(), o.late())
	}
}

func TestLoginsThatFailOnABusyMachineGetAnotherAttempt(t *testing.T) {
	t.Parallel()
	o := fine()
	o.logins = []login{{report.Login{Failed: true}, errors.New("no such thing")}}
	o.act.Summary.Failed, o.quiet.P99 = 1, report.Millis(31*ms)
	if len(o.wrong()) != 0 || len(o.late()) != 1 {
		t.Errorf("wrong %q, late %q", o.wrong(), o.late())
	}
}

func TestBoundIsThatOfTheLeastQuietTimeOfTheDay(t *testing.T) {
	t.Parallel()
	o := fine()
	for quiet, want := range map[time.Duration]time.Duration{1 * ms: 5 * ms, 4 * ms: 8 * ms} {
		o := o
		if o.expect(report.Summary{P99: report.Millis(quiet)}); o.act.Bound != report.Millis(want) {
			t.Errorf("after %v: %v, want %v", quiet, o.act.Bound, want)
		}
	}
}

func TestSessionThatIsGoneInOneLookIsNotCounted(t *testing.T) {
	t.Parallel()
	looks := []map[int64]bool{{1: true, 2: true, 3: true}, {1: true, 3: true}, {1: true, 2: true, 3: true, 4: true}}
	if n := lasting(looks); n != 2 {
		t.Errorf("got %d, want 2", n)
	}
}

func TestServerWithoutFaultsLeavesOutTheDaysThatNeedOne(t *testing.T) {
	t.Parallel()
	var staged []string
	for _, d := range days {
		if d.staged(given{}) {
			staged = append(staged, d.name)
		} else if d.lacks == "" {
			t.Errorf("%s does not say what it needs", d.name)
		}
		if !d.staged(frozen{}) {
			t.Errorf("%s is not staged on a private server", d.name)
		}
		if !d.staged(contained{}) {
			t.Errorf("%s is not staged on a server in a container", d.name)
		}
	}
	want := []string{"Monday morning", "Out for lunch", "Slow readers", "Leaks", "Cut connections", "Storm of cancels"}
	if !slices.Equal(staged, want) {
		t.Errorf("got %q, want %q", staged, want)
	}
}

func TestPartitionsHaveAsManyConnectionsAsTheOnePool(t *testing.T) {
	t.Parallel()
	for _, d := range days {
		n := 0
		for _, c := range d.pools {
			n += c.MaxOpenConns
		}
		if n != total {
			t.Errorf("%s: %d, want %d", d.name, n, total)
		}
	}
}

func TestDSNLeadsIntoAnotherDatabase(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://u:p@h:1/postgres?sslmode=disable": "postgres://u:p@h:1/x?sslmode=disable",
		"host=h dbname=postgres":                      "host=h dbname=postgres dbname=x",
	} {
		if got, err := postgresIn(dsn, "x"); err != nil || got != want {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if got, err := mysqlIn("u:p@tcp(h:1)/d?timeout=3s", "x"); err != nil || got != "u:p@tcp(h:1)/x?timeout=3s" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, in := range []func(string, string) (string, error){postgresIn, mysqlIn} {
		if _, err := in("://s3cr3t@%zz", "x"); err != errBadDSN {
			t.Errorf("got %v", err)
		}
	}
}
