package fakedb_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
)

func TestOpenConnectionsAndRunningStatementsAreCountedOnTheServer(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.db.SetMaxOpenConns(3)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { _, _ = b.exec(b.ctx, "sleep 1s") })
		}
		synctest.Wait()
		stats := b.s.Stats()
		equal(b.T, "open", stats.Open, 3)
		equal(b.T, "running", stats.Running, 3)
		all.Wait()
		stats = b.s.Stats()
		equal(b.T, "peak open", stats.PeakOpen, 3)
		equal(b.T, "peak running", stats.PeakRunning, 3)
		equal(b.T, "running", stats.Running, 0)
		b.blameless()
	}, fakedb.WithoutLog())
}

func TestLogTellsWhoDidWhatWhere(t *testing.T) {
	type key struct{}
	inBubble(t, func(b *bench) {
		tx, err := b.db.BeginTx(context.WithValue(b.ctx, key{}, "reporting"), &sql.TxOptions{ReadOnly: true})
		b.nilError(err)
		st, err := tx.PrepareContext(b.ctx, "args ?")
		b.nilError(err)
		rows, err := st.QueryContext(context.WithValue(b.ctx, key{}, "oltp"), 7)
		b.nilError(err)
		b.nilError(rows.Close())
		b.nilError(tx.Commit())
		equalList(b.T, "log", texts(b.s.Calls()), `dial`, `conn 1 begin`, `conn 1 prepare "args ?"`,
			`conn 1 query "args ?"`, `conn 1 close rows "args ?"`, `conn 1 commit`, `conn 1 close stmt "args ?"`,
			`conn 1 valid`)
		equalList(b.T, "statements", texts(b.s.Calls(fakedb.Query)), `conn 1 query "args ?"`)
		begin, query := b.s.Calls(fakedb.Begin)[0], b.s.Calls(fakedb.Query)[0]
		equal(b.T, "read only", begin.Tx.ReadOnly, true)
		equalList(b.T, "seen", []any{begin.Seen, query.Seen}, "reporting", "oltp")
		equal(b.T, "statement", query.Stmt, 1)
		equal(b.T, "argument", query.Args[0].Value, any(int64(7)))
		b.s.ClearLog()
		equal(b.T, "calls after clearing", len(b.s.Calls()), 0)
		b.blameless()
	}, fakedb.WithProbe(func(ctx context.Context) any { return ctx.Value(key{}) }))
}

func TestLogSaysWhatIsStillGoingOn(t *testing.T) {
	inBubble(t, func(b *bench) {
		go func() { _, _ = b.exec(b.ctx, "sleep 1s; error") }()
		synctest.Wait()
		equal(b.T, "done", b.s.Calls(fakedb.Exec)[0].Done, false)
		time.Sleep(time.Second)
		synctest.Wait()
		call := b.s.Calls(fakedb.Exec)[0]
		equal(b.T, "done", call.Done, true)
		equal(b.T, "state", sqlState(call.Err), "XX000")
		equal(b.T, "began", time.Since(call.At), time.Second)
	})
}

func TestStatementsAreCountedPerConnection(t *testing.T) {
	inBubble(t, func(b *bench) {
		first, second := b.conn(), b.conn()
		st, err := first.PrepareContext(b.ctx, "ok")
		b.nilError(err)
		b.nilError(st.Close())
		_, err = second.PrepareContext(b.ctx, "ok")
		b.nilError(err)
		conns := b.s.Conns()
		equal(b.T, "prepared on the first", conns[0].Prepared, 1)
		equal(b.T, "closed on the first", conns[0].StmtsClosed, 1)
		equal(b.T, "prepared on the second", conns[1].Prepared, 1)
		equal(b.T, "closed on the second", conns[1].StmtsClosed, 0)
		b.nilError(first.Close())
		b.nilError(second.Close())
		b.blameless()
	})
}

func TestConnIDTellsWhichConnectionIsHeld(t *testing.T) {
	inBubble(t, func(b *bench) {
		c := b.conn()
		b.nilError(c.Raw(func(driverConn any) error {
			equal(b.T, "ID", fakedb.ConnID(driverConn), 1)
			return nil
		}))
		b.nilError(c.Close())
		equal(b.T, "ID of nothing of ours", fakedb.ConnID(b), 0)
	})
}

func TestTransactionIsKnownToItsSession(t *testing.T) {
	inBubble(t, func(b *bench) {
		tx, err := b.db.BeginTx(b.ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		b.nilError(err)
		var text string
		b.nilError(tx.QueryRowContext(b.ctx, "tx").Scan(&text))
		equal(b.T, "inside", text, "isolation=6 readonly=false")
		equal(b.T, "in transaction", b.s.Conns()[0].InTx, true)
		b.nilError(tx.Rollback())
		equal(b.T, "in transaction", b.s.Conns()[0].InTx, false)
		b.blameless()
	})
}
