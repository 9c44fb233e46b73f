package httpbulkhead_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/httpbulkhead"
	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// setup opens a handle with reports on one connection, and nobody in the queue.
func setup(t *testing.T) *sql.DB {
	t.Helper()
	db, err := partition.OpenDB(fakedb.New().Connector(),
		partition.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
		partition.WithPool(workload.Reporting, partition.PoolConfig{MaxOpenConns: 1, MaxWaiting: partition.NoQueue}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// refusal is the error of a pool that has been full for as long as held says.
func refusal(t *testing.T, held time.Duration) error {
	t.Helper()
	db := setup(t)
	ctx := workload.With(t.Context(), workload.Reporting)
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	time.Sleep(held)
	_, err = db.ExecContext(ctx, "ok")
	return err
}

func answer(err error) (*httptest.ResponseRecorder, bool) {
	w := httptest.NewRecorder()
	return w, httpbulkhead.Unavailable(w, err)
}

func TestRejectionIsAnsweredWithThePoolsGuessInWholeSecondsRoundedUp(t *testing.T) {
	t.Parallel()
	for _, held := range []time.Duration{time.Nanosecond, time.Second, 1001 * time.Millisecond, 2500 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			err := refusal(t, held)
			var refused *partition.AcquireError
			if !errors.As(err, &refused) {
				t.Fatal(err)
			}
			w, answered := answer(fmt.Errorf("report: %w", err))
			if !answered || w.Code != http.StatusServiceUnavailable {
				t.Fatalf("held %v: answered %v, status %d", held, answered, w.Code)
			}
			want := max(1, int(math.Ceil(refused.RetryAfter().Seconds())))
			if got := w.Header().Get("Retry-After"); got != strconv.Itoa(want) {
				t.Errorf("held %v: Retry-After %q, want %d", held, got, want)
			}
		})
	}
}

func TestPausedPoolAsksForAtLeastASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := setup(t)
		reg, _ := partition.RegistryOf(db)
		pool, _ := reg.Pool(workload.OLTP)
		pool.Pause()
		w, answered := answer(db.PingContext(t.Context()))
		if seconds, err := strconv.Atoi(w.Header().Get("Retry-After")); !answered || err != nil || seconds < 1 {
			t.Errorf("answered %v, Retry-After %q", answered, w.Header().Get("Retry-After"))
		}
	})
}

func TestBodyOfARejectionTellsNothingOfThePool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := answer(refusal(t, time.Second))
		if body := w.Body.String(); body != "busy, try again later\n" {
			t.Errorf("%q", body)
		}
		for name, values := range w.Header() {
			if strings.Contains(strings.Join(values, " "), "reporting") {
				t.Errorf("%s: %q", name, values)
			}
		}
	})
}

func TestSentinelWithoutFiguresIsAnsweredToo(t *testing.T) {
	t.Parallel()
	w, answered := answer(partition.ErrRejected)
	if !answered || w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%v %d %v", answered, w.Code, w.Header())
	}
}

func TestOtherErrorsAreLeftAloneAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := setup(t)
		for what, err := range map[string]error{
			"none":             nil,
			"caller gave up":   gaveUp(t, db),
			"unknown workload": db.PingContext(workload.With(t.Context(), "nobody")),
			"untagged":         partition.ErrUntagged,
			"timeout":          &stmttimeout.Error{Limit: time.Second},
			"no rows":          sql.ErrNoRows,
			"deadline":         context.DeadlineExceeded,
		} {
			w := &untouched{t: t, what: what}
			if httpbulkhead.Unavailable(w, err) {
				t.Errorf("%s was answered: %v", what, err)
			}
			if what != "none" && err == nil {
				t.Errorf("%s is no error", what)
			}
		}
	})
}

func TestNameThatIsNoPoolComesBackAsUnknownWorkload(t *testing.T) {
	t.Parallel()
	db := setup(t)
	for _, name := range []workload.Name{"nobody", "No Body", "\x00"} {
		var err error
		h := httpbulkhead.TagFunc(always(name))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			err = db.PingContext(r.Context())
		}))
		h.ServeHTTP(httptest.NewRecorder(), get(t.Context()))
		if !errors.Is(err, partition.ErrUnknownWorkload) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// gaveUp is the error of a caller whose context ended in the queue.
func gaveUp(t *testing.T, db *sql.DB) error {
	t.Helper()
	ctx := workload.With(t.Context(), workload.Batch)
	for range 2 {
		conn, err := db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	err := db.PingContext(ctx)
	var refused *partition.AcquireError
	if !errors.As(err, &refused) || refused.Reason != partition.ReasonCallerGaveUp {
		t.Fatalf("the caller did not give up: %v", err)
	}
	return err
}

// untouched is a response that nobody may touch.
type untouched struct {
	t    *testing.T
	what string
}

func (w *untouched) Header() http.Header {
	w.t.Errorf("%s: the header was touched", w.what)
	return http.Header{}
}

func (w *untouched) Write(p []byte) (int, error) {
	w.t.Errorf("%s: a body was written", w.what)
	return len(p), nil
}

func (w *untouched) WriteHeader(int) { w.t.Errorf("%s: a status was written", w.what) }
