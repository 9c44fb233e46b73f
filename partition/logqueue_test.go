package partition_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// stuckLog is a handler that writes nothing until it is let go.
type stuckLog struct {
	capture
	free chan struct{}
}

func (s *stuckLog) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s *stuckLog) Handle(ctx context.Context, r slog.Record) error {
	<-s.free
	return s.capture.Handle(ctx, r)
}

func TestHandlerOfTheLogThatIsStuckKeepsNoPermit(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(r *rig){
		"first connection": func(*rig) {},
		"cancelled statement": func(r *rig) {
			ctx, cancel := context.WithTimeout(oltp, time.Second)
			defer cancel()
			r.db.ExecContext(ctx, "hang")
		},
		"reclaim": func(r *rig) {
			conn, err := r.db.Conn(oltp)
			if err != nil {
				r.Fatal(err)
			}
			defer conn.Close()
			time.Sleep(time.Minute)
			if _, err := conn.ExecContext(oltp, "ok"); err == nil {
				r.Error("the late holder still has it")
			}
		},
		"rejections": func(r *rig) {
			defer r.take(workload.OLTP, 1)()
			for range 5000 {
				r.db.ExecContext(oltp, "ok")
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := &stuckLog{free: make(chan struct{})}
			r := setup(t, fakedb.New(fakedb.WithCancelBreaks()), partition.WithLogger(slog.New(log)), partition.WithPool(workload.OLTP,
				partition.PoolConfig{MaxOpenConns: 1, MaxWaiting: partition.NoQueue, AcquireTimeout: time.Second, MaxHold: 10 * time.Second}))
			use(r)
			time.Sleep(20 * time.Second)
			r.mustExec(oltp, "ok")
			r.idle()
			close(log.free)
			if len(log.about("unknown kind of server")) != 1 {
				t.Errorf("%s: lines are lost: %+v", name, log.lines)
			}
		})
	}
}

// A line is there when the call is over that it tells of, and the last ones when Close is.
func TestLinesAreWrittenInOrderAndBeforeCloseReturns(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	r := setup(t, fakedb.New(), partition.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), partition.WithName("shop"))
	r.db.SetMaxOpenConns(1)
	r.mustExec(oltp, "ok")
	r.pool(workload.OLTP).Pause()
	for range 3 {
		r.db.ExecContext(oltp, "ok")
	}
	r.db.Close()
	rest := log.String()
	for _, text := range []string{"was undone", "statement timeout", "a caller is rejected", "more callers were rejected"} {
		at := strings.Index(rest, text)
		if at < 0 {
			t.Fatalf("no %q, or too soon:\n%s", text, log.String())
		}
		rest = rest[at:]
	}
	if !strings.Contains(rest, "registry=shop") {
		t.Error("no name")
	}
}

func TestLinesForWhichThereIsNoRoomAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &stuckLog{free: make(chan struct{})}
		r := setup(t, fakedb.New(fakedb.WithoutLog()), partition.WithLogger(slog.New(log)))
		r.pool(workload.OLTP).Pause()
		const bursts = 2000
		for range bursts {
			r.db.ExecContext(oltp, "ok")
			time.Sleep(time.Minute)
		}
		close(log.free)
		synctest.Wait()
		r.db.ExecContext(oltp, "ok")
		lines := log.about("a caller is rejected")
		last := lines[len(lines)-1]
		if dropped := last.attrs["lines_dropped_before"].Int64(); dropped == 0 || len(lines)+int(dropped) != bursts+1 {
			t.Errorf("%d lines and %d dropped of %d", len(lines), dropped, bursts+1)
		}
	})
}
