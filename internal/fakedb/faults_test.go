package fakedb_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
)

var errAsked = errors.New("as asked")

func TestHookFailsItsCall(t *testing.T) {
	for kind, do := range map[fakedb.Kind]func(b *bench) error{
		fakedb.Dial:     func(b *bench) error { return b.db.PingContext(b.ctx) },
		fakedb.Ping:     func(b *bench) error { return b.db.PingContext(b.ctx) },
		fakedb.Exec:     func(b *bench) error { _, err := b.exec(b.ctx, "ok"); return err },
		fakedb.Query:    func(b *bench) error { _, err := b.query("ok"); return err },
		fakedb.Next:     func(b *bench) error { _, err := b.query("ok"); return err },
		fakedb.Prepare:  func(b *bench) error { _, err := b.db.PrepareContext(b.ctx, "ok"); return err },
		fakedb.Begin:    func(b *bench) error { return endTx(b, (*sql.Tx).Rollback) },
		fakedb.Check:    func(b *bench) error { _, err := b.exec(b.ctx, "ok ?", 1); return err },
		fakedb.Commit:   func(b *bench) error { return endTx(b, (*sql.Tx).Commit) },
		fakedb.Rollback: func(b *bench) error { return endTx(b, (*sql.Tx).Rollback) },
	} {
		t.Run(string(kind), func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.s.On(kind, fakedb.Fail(errAsked))
				b.isError(do(b), errAsked)
				b.s.On(kind, nil)
				b.nilError(do(b))
				b.blameless()
			})
		})
	}
}

func endTx(b *bench, end func(*sql.Tx) error) error {
	tx, err := b.db.BeginTx(b.ctx, nil)
	if err != nil {
		return err
	}
	return end(tx)
}

func TestDialCanBeRefusedSlowOrHung(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.s.On(fakedb.Dial, fakedb.First(2, fakedb.Fail(errAsked)))
		b.isError(b.db.PingContext(b.ctx), errAsked)
		b.isError(b.db.PingContext(b.ctx), errAsked)
		b.s.On(fakedb.Dial, fakedb.Delay(120*time.Millisecond))
		ctx, cancel := context.WithTimeout(b.ctx, 100*time.Millisecond)
		defer cancel()
		b.isError(b.db.PingContext(ctx), context.DeadlineExceeded)
		b.nilError(b.db.PingContext(b.ctx))
		stats := b.s.Stats()
		equal(b.T, "dials begun", stats.Dials, 4)
		equal(b.T, "dials that succeeded", stats.Dialed, 1)
		b.blameless()
	})
}

func TestStallIsDeafUntilReleased(t *testing.T) {
	inBubble(t, func(b *bench) {
		release := make(chan struct{})
		b.s.On(fakedb.Ping, fakedb.Stall(release))
		ctx, cancel := context.WithCancel(b.ctx)
		done := make(chan error)
		go func() { done <- b.db.PingContext(ctx) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case <-done:
			b.Error("returned before it was released")
		default:
		}
		close(release)
		b.nilError(<-done)
	})
}

func TestBadConnIsTriedThreeTimesByPlainDatabaseSQL(t *testing.T) {
	for _, text := range []string{"badconn", "badconn wrapped"} {
		t.Run(text, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				_, err := b.exec(b.ctx, text)
				b.isError(err, sqldriver.ErrBadConn)
				equal(b.T, "attempts", len(b.s.Calls(fakedb.Exec)), 3)
				equal(b.T, "closed", b.s.Stats().Closed, 3)
				b.blameless()
			})
		})
	}
}

func TestKilledConnectionIsFoundOutAtItsNextCall(t *testing.T) {
	inBubble(t, func(b *bench) {
		equal(b.T, "first", one[int](b, "id"), 1)
		b.s.KillAll()
		equal(b.T, "open", b.s.Stats().Open, 0)
		equal(b.T, "next", one[int](b, "id"), 2)
		equal(b.T, "calls on the dead one", len(b.s.Calls(fakedb.Query)), 3)
		b.blameless()
	})
}

func TestKillIsSeenByWhoeverShouldSeeIt(t *testing.T) {
	inBubble(t, func(b *bench) {
		equal(b.T, "first", one[int](b, "id"), 1)
		b.s.Kill(1)
		equal(b.T, "next", one[int](b, "id"), 2)
		equal(b.T, "the dead one was not called", len(b.s.Calls(fakedb.Query)), 2)
		c := b.conn()
		b.s.Kill(2)
		b.nilError(c.Close())
		equal(b.T, "closed on return", b.s.Conns()[1].Closed, true)
		b.blameless()
	}, fakedb.WithKillSeenBy(fakedb.SessionResetter|fakedb.Validator))
}

func TestKillEndsARunningStatementWithoutARetry(t *testing.T) {
	for _, text := range []string{"sleep 1h", "hang", "deaf", "rows 1 at 0 deaf"} {
		t.Run(text, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				time.AfterFunc(time.Second, b.s.KillAll)
				took, err := b.exec(b.ctx, text)
				equal(b.T, "state", sqlState(err), "57P01")
				equal(b.T, "took", took, time.Second)
				equal(b.T, "attempts", len(b.s.Calls(fakedb.Exec)), 1)
				equal(b.T, "closed on return", b.s.Stats().Closed, 1)
				b.blameless()
			})
		})
	}
}

func TestCancelBreaksTheConnectionIfAsked(t *testing.T) {
	for breaks, opts := range map[bool][]fakedb.Option{true: {fakedb.WithCancelBreaks()}, false: nil} {
		t.Run(map[bool]string{true: "breaks", false: "keeps"}[breaks], func(t *testing.T) {
			inBubble(t, func(b *bench) {
				ctx, cancel := context.WithTimeout(b.ctx, time.Second)
				defer cancel()
				_, err := b.exec(ctx, "hang")
				b.isError(err, context.DeadlineExceeded)
				equal(b.T, "closed", b.s.Stats().Closed == 1, breaks)
				b.blameless()
			}, opts...)
		})
	}
}

func TestOrphanKeepsItsPlaceOnTheServer(t *testing.T) {
	inBubble(t, func(b *bench) {
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		defer cancel()
		_, err := b.exec(ctx, "orphan 3s")
		b.isError(err, context.DeadlineExceeded)
		stats := b.s.Stats()
		equal(b.T, "closed by the driver", stats.Closed, 1)
		equal(b.T, "still open", stats.Open, 1)
		equal(b.T, "still running", stats.Running, 1)
		time.Sleep(2*time.Second + 1)
		stats = b.s.Stats()
		equal(b.T, "open at its end", stats.Open, 0)
		equal(b.T, "running at its end", stats.Running, 0)
		b.blameless()
	})
}

func TestKillEndsAnOrphan(t *testing.T) {
	inBubble(t, func(b *bench) {
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		defer cancel()
		_, err := b.exec(ctx, "orphan 1h")
		b.isError(err, context.DeadlineExceeded)
		b.s.KillAll()
		synctest.Wait()
		equal(b.T, "running", b.s.Stats().Running, 0)
	})
}

func TestSlowCloseCountsAsOpen(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.s.On(fakedb.CloseConn, fakedb.Delay(2*time.Second))
		b.nilError(b.db.PingContext(b.ctx))
		closed := make(chan error)
		go func() { closed <- b.db.Close() }()
		synctest.Wait()
		equal(b.T, "open meanwhile", b.s.Stats().Open, 1)
		b.nilError(<-closed)
		equal(b.T, "open afterwards", b.s.Stats().Open, 0)
	})
}

func TestServerRefusesMoreConnectionsThanItHolds(t *testing.T) {
	inBubble(t, func(b *bench) {
		first := b.conn()
		_, err := b.db.Conn(b.ctx)
		equal(b.T, "state", sqlState(err), "53300")
		b.nilError(first.Close())
		b.nilError(b.conn().Close())
	}, fakedb.WithMaxConns(1))
}

func TestPreparedStatementsCanBecomeStale(t *testing.T) {
	for text, state := range map[string]string{
		"deallocate all": "26000", "discard all": "26000", "alter table k": "0A000",
	} {
		t.Run(text, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				st, err := b.db.PrepareContext(b.ctx, "ok")
				b.nilError(err)
				_, err = b.exec(b.ctx, text)
				b.nilError(err)
				_, err = st.ExecContext(b.ctx)
				equal(b.T, "state", sqlState(err), state)
				b.nilError(st.Close())
				st, err = b.db.PrepareContext(b.ctx, "ok")
				b.nilError(err)
				_, err = st.ExecContext(b.ctx)
				b.nilError(err)
				b.nilError(st.Close())
				b.blameless()
			})
		})
	}
}

func TestRowsEndWithTheirConnectionOrTheirContext(t *testing.T) {
	for want, end := range map[string]func(*fakedb.Server, context.CancelFunc){
		"57P01": func(s *fakedb.Server, _ context.CancelFunc) { s.KillAll() },
		"":      func(_ *fakedb.Server, cancel context.CancelFunc) { cancel() },
	} {
		t.Run("state"+want, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				ctx, cancel := context.WithCancel(b.ctx)
				defer cancel()
				rows, err := b.db.QueryContext(ctx, "rows 3")
				b.nilError(err)
				equal(b.T, "first row", rows.Next(), true)
				end(b.s, cancel)
				synctest.Wait()
				equal(b.T, "second row", rows.Next(), false)
				equal(b.T, "state", sqlState(rows.Err()), want)
				equal(b.T, "error", rows.Err() != nil, true)
				b.nilError(rows.Close())
				b.blameless()
			})
		})
	}
}

func TestEveryRowLooksAtTheContextOfItsQuery(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	rows, err := dial(t, fakedb.New()).(everything).QueryContext(ctx, "rows 3", nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	equal(t, "error", rows.Next(make([]sqldriver.Value, 1)), context.Canceled)
}
