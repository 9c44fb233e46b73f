package partition_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// capture is a log that keeps its lines.
type capture struct {
	slog.Handler // nil
	mu           sync.Mutex
	lines        []line
}

type line struct {
	at    time.Time
	level slog.Level
	text  string
	attrs map[string]slog.Value
}

func (c *capture) Enabled(context.Context, slog.Level) bool { return true }
func (c *capture) WithAttrs([]slog.Attr) slog.Handler       { return c }

func (c *capture) Handle(_ context.Context, r slog.Record) error {
	l := line{time.Now(), r.Level, r.Message, make(map[string]slog.Value)}
	r.Attrs(func(a slog.Attr) bool { l.attrs[a.Key] = a.Value; return true })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, l)
	return nil
}

// about returns the lines with this in their text.
func (c *capture) about(text string) (found []line) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		if contains(l.text, text) {
			found = append(found, l)
		}
	}
	return found
}

// sum adds up what the lines count under a key.
func sum(lines []line, key string) (n uint64) {
	for _, l := range lines {
		if v, ok := l.attrs[key]; ok {
			n += v.Uint64()
		}
	}
	return n
}

func captured() (*capture, partition.Option) {
	c := &capture{}
	return c, partition.WithLogger(slog.New(c))
}

func TestBurstOfRejectionsIsALineAtOnceAndThenItsCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers = 10_000
		log, opt := captured()
		r := setup(t, fakedb.New(fakedb.WithoutLog()), opt, partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1, MaxWaiting: 10}))
		defer r.take(workload.OLTP, 1)()
		began := time.Now()
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				time.Sleep(time.Duration(i%25) * time.Second)
				r.db.ExecContext(oltp, "ok")
			})
		}
		all.Wait()
		first := log.about("a caller is rejected")
		if len(first) != 1 || first[0].at.Sub(began) > 100*ms || first[0].level != slog.LevelWarn {
			t.Fatalf("%+v", first)
		}
		for key, want := range map[string]string{"pool": "oltp", "reason": "queue_full", "in_use": "1", "max_open_conns": "1", "waiting": "10", "max_waiting": "10"} {
			if got := first[0].attrs[key].String(); got != want {
				t.Errorf("%s=%s, want %s", key, got, want)
			}
		}
		time.Sleep(time.Minute)
		more, s := log.about("more callers were rejected"), r.stats(workload.OLTP)
		if n := len(more); n < 2 || n > 4 {
			t.Errorf("%d lines of counts in 25 seconds", n)
		}
		if full, late := sum(more, "queue_full")+1, sum(more, "acquire_timeout"); full != s.RejectedQueueFull || late != s.RejectedTimeout || full+late != callers {
			t.Errorf("the lines count %d and %d, the statistics %d and %d", full, late, s.RejectedQueueFull, s.RejectedTimeout)
		}
		r.db.ExecContext(oltp, "ok")
		if n := len(log.about("a caller is rejected")); n != 2 {
			t.Errorf("the first of the next burst is line %d", n)
		}
	})
}

func TestCountsAddUpWhereBurstsEndAndBeginInTheSameInstant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := captured()
		r := setup(t, fakedb.New(), opt)
		r.pool(workload.OLTP).Pause()
		for _, pause := range []time.Duration{10, 20, 21, 30, 35, 9, 11, 20} {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() { r.db.ExecContext(oltp, "ok") })
			}
			all.Wait()
			time.Sleep(pause * time.Second)
		}
		r.db.Close()
		first, more := len(log.about("a caller is rejected")), sum(log.about("more callers"), "paused")
		if first < 4 || uint64(first)+more != 160 {
			t.Errorf("%d first lines, and %d counted, of 160", first, more)
		}
	})
}

func TestCloseTellsWhatWasCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := captured()
		r := setup(t, fakedb.New(), opt)
		r.pool(workload.OLTP).Pause()
		for range 5 {
			r.db.ExecContext(oltp, "ok")
		}
		r.db.Close()
		if more := log.about("more callers"); sum(more, "paused") != 4 {
			t.Errorf("%+v", more)
		}
		time.Sleep(time.Hour)
		if n := len(log.about("")); n != 2 {
			t.Errorf("%d lines, want the first and the count", n)
		}
	})
}

func TestCallersWhoGiveUpAreNotLoggedAsRejected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := captured()
		r := setup(t, fakedb.New(), opt, size(workload.OLTP, 1))
		defer r.take(workload.OLTP, 1)()
		ctx, cancel := context.WithTimeout(oltp, 10*ms)
		defer cancel()
		if _, err := r.db.ExecContext(ctx, "ok"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if lines := log.about("reject"); len(lines) > 0 {
			t.Errorf("%+v", lines)
		}
	})
}

func TestSaturationIsLoggedWhenItBeginsAndWithItsLengthWhenItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := captured()
		r := setup(t, fakedb.New(), opt, partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 2, AcquireTimeout: time.Minute}))
		giveBack := r.take(workload.OLTP, 2)
		waiting := r.goExec()
		time.Sleep(7300 * ms)
		begun := log.about("saturated: every")
		if len(begun) != 1 || begun[0].level != slog.LevelWarn || begun[0].attrs["for"].Duration() > 3*time.Second || begun[0].attrs["waiting"].Int64() != 1 {
			t.Errorf("%+v", begun)
		}
		giveBack()
		<-waiting
		time.Sleep(3 * time.Second)
		over := log.about("no longer saturated")
		if len(over) != 1 || over[0].level != slog.LevelInfo || over[0].attrs["lasted"].Duration() != 7300*ms {
			t.Errorf("%+v", over)
		}
	})
}

func TestMomentsOfSaturationAreNotLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := captured()
		r := setup(t, fakedb.New(fakedb.WithoutLog()), opt, size(workload.OLTP, 1))
		for range 100 {
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { r.mustExec(oltp, "sleep 10ms") })
			}
			both.Wait()
			time.Sleep(80 * ms)
		}
		if lines := log.about("saturated"); len(lines) > 0 {
			t.Errorf("%+v", lines)
		}
	})
}

func TestPoolThatIsFullAndThatNobodyWaitsForIsNotSaturated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := captured()
		r := setup(t, fakedb.New(), opt, size(workload.OLTP, 1))
		giveBack := r.take(workload.OLTP, 1)
		var waiter sync.WaitGroup
		waiter.Go(func() {
			defer r.take(workload.OLTP, 1)()
			time.Sleep(time.Minute)
			if lines := log.about("saturated"); len(lines) > 0 {
				t.Errorf("%+v", lines)
			}
			r.db.ExecContext(oltp, "ok") // who waits in vain
			time.Sleep(3 * time.Second)
			r.db.ExecContext(oltp, "ok")
			time.Sleep(time.Second)
			if lines := log.about("saturated: every"); len(lines) != 1 {
				t.Errorf("%d lines where callers were turned away", len(lines))
			}
		})
		time.Sleep(10 * ms)
		giveBack()
		waiter.Wait()
	})
}

func TestFailedOpensAreLoggedOnceAndThenCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := captured()
		r := setup(t, fakedb.New(), opt)
		r.server.On(fakedb.Dial, fakedb.Fail(errors.New("no route to host")))
		for range 50 {
			r.db.ExecContext(oltp, "ok")
			time.Sleep(500 * ms)
		}
		time.Sleep(time.Minute)
		first, more := log.about("cannot be opened"), log.about("could not be opened")
		if len(first) != 1 || !contains(first[0].attrs["error"].String(), "no route") {
			t.Errorf("%+v", first)
		}
		if n := sum(more, "failed"); n+1 != r.stats(workload.OLTP).OpenFailures || len(more) > 3 {
			t.Errorf("%d lines count %d, the statistics %d", len(more), n, r.stats(workload.OLTP).OpenFailures)
		}
	})
}

// A connection of which the server says nothing.
func TestStatementsWhoseEndIsUnknownAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := captured()
		r := setup(t, fakedb.New(fakedb.WithCancelBreaks()), opt, partition.WithDialect(stmttimeout.ClientOnly()), limited(50*ms))
		for range 3 {
			r.db.ExecContext(oltp, "hang")
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		first, more := log.about("a statement did not end"), log.about("more statements")
		if n := r.stats(workload.OLTP).EndedUnknown; n != 3 || len(first) != 1 || sum(more, "unknown") != 2 {
			t.Errorf("of %d unknown ends: %+v, then %+v", n, first, more)
		}
	})
}

func TestLeaksAndReclaimsAreLoggedSinglyUpToABound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := captured()
		r := setup(t, fakedb.New(), opt, partition.WithPool(workload.OLTP, partition.PoolConfig{
			MaxOpenConns: 30, LeakAfter: time.Second, MaxHold: 2 * time.Second,
		}))
		defer r.take(workload.OLTP, 30)()
		time.Sleep(time.Minute)
		for _, c := range []struct{ single, more, key string }{
			{"a connection is held for long", "more connections are held", "leaked"},
			{"a connection is taken back", "more connections were taken back", "reclaimed"},
		} {
			if single, more := len(log.about(c.single)), sum(log.about(c.more), c.key); single != 10 || more != 20 {
				t.Errorf("%s: %d lines, and %d counted", c.single, single, more)
			}
		}
	})
}

// hostile is a password with all that parts a DSN, or that a driver might escape.
const hostile = `p@ss:w/ord?x=1&y'"z%#hunter2`

func TestNoLogLineShowsAPasswordOrAnArgument(t *testing.T) {
	t.Parallel()
	escaped := url.UserPassword("app", hostile).String()
	for name, dsn := range map[string]string{
		"url":      "postgres://" + escaped + "@db.internal/shop",
		"mysql":    "app:" + hostile + "@tcp(db.internal:3306)/shop",
		"keywords": `host=db.internal user=app password='` + strings.ReplaceAll(hostile, "'", `\'`) + `' dbname=shop`,
	} {
		for _, known := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				log, opt := captured()
				s := fakedb.New()
				says := func(context.Context, fakedb.Call) error {
					return errors.New("cannot dial " + dsn + ": refused")
				}
				s.On(fakedb.Dial, says)
				db := open(t, s, dsn, known, opt, partition.WithPool(workload.OLTP, partition.PoolConfig{LeakAfter: time.Second, LeakStacks: true}))
				defer db.Close()
				db.ExecContext(oltp, "ok", "argument")
				db.ExecContext(oltp, "ok", "argument")
				s.On(fakedb.Dial, nil)
				rows, err := db.QueryContext(oltp, "args", "argument")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				rows.Close()
				if len(log.about("cannot be opened")) != 1 || len(log.about("held for long")) != 1 {
					t.Error("not logged")
				}
				for _, l := range log.about("") {
					for key, v := range l.attrs {
						for _, secret := range []string{"hunter2", hostile, "argument"} {
							if contains(v.String(), secret) {
								t.Errorf("%s, DSN known %v: %s=%s", name, known, key, v)
							}
						}
					}
				}
			})
		}
	}
}

func TestNoLogLineShowsWhatLooksLikeAPasswordWhereTheDSNIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`auth failed for {"user":"gina","password":"hunter2"}`, `"password": "hun hunter2"`, `password=\"hunter2\"`, `PGPASSWORD=hunter2`, `sslpassword=hunter2`,
		`pass=hunter2 host=db`, `Pass:hunter2`, `map[password:hunter2 user:gina]`, `&{User:gina Passwd:hunter2 Net:tcp}`, `?authToken=hunter2`, `secret=hunter2`,
		`cannot parse "postgres://gina:hunter2@db/base": x`, `gina:hunter2@tcp(db:3306)/base`, `gina:hunter2@unix(/x)/base`, `gina:hunter2@/base`,
	} {
		synctest.Test(t, func(t *testing.T) {
			log, opt := captured()
			s := fakedb.New()
			s.On(fakedb.Dial, fakedb.Fail(errors.New(text)))
			r := setup(t, s, opt)
			r.db.ExecContext(oltp, "ok")
			lines := log.about("cannot be opened")
			if len(lines) != 1 || contains(lines[0].attrs["error"].String(), "hunter2") {
				t.Errorf("%s: %+v", text, lines)
			}
		})
	}
}

// open opens a handle whose registry knows the DSN, or has just a connector.
func open(t *testing.T, s *fakedb.Server, dsn string, known bool, opts ...partition.Option) *sql.DB {
	t.Helper()
	var db *sql.DB
	var err error
	if known {
		db, err = partition.Open(s.Register("logging"), dsn, opts...)
	} else {
		db, err = partition.OpenDB(s.Connector(), opts...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return db
}
