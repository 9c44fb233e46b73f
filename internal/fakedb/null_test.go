package fakedb_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
)

func TestNullServesPlainDatabaseSQL(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]sqldriver.Connector{"plain": fakedb.Null(), "checked": fakedb.NullChecked()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bench{T: t, db: sql.OpenDB(c), ctx: t.Context()}
			b.nilError(b.db.PingContext(b.ctx))
			_, err := b.exec(b.ctx, "x", 1)
			b.nilError(err)
			list, err := b.query("x")
			b.nilError(err)
			equalList(t, "rows", list, 1)
			st, err := b.db.PrepareContext(b.ctx, "x")
			b.nilError(err)
			b.nilError(st.QueryRowContext(b.ctx, 1).Scan(new(int)))
			b.nilError(st.Close())
			b.nilError(endTx(b, (*sql.Tx).Commit))
			b.nilError(b.db.Close())
			equal(t, "checker", has[sqldriver.NamedValueChecker](dialed(t, c)), name == "checked")
		})
	}
}

func dialed(t *testing.T, c sqldriver.Connector) sqldriver.Conn {
	t.Helper()
	conn, err := c.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestNullSleepTakesItsTimeOrEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, db: sql.OpenDB(fakedb.NullSleep(time.Second)), ctx: t.Context()}
		for range 2 {
			took, err := b.exec(b.ctx, "x")
			b.nilError(err)
			equal(t, "took", took, time.Second)
			ctx, cancel := context.WithTimeout(b.ctx, time.Millisecond)
			took, err = b.exec(ctx, "x")
			cancel()
			b.isError(err, context.DeadlineExceeded)
			equal(t, "took", took, time.Millisecond)
		}
		b.nilError(b.db.Close())
	})
}

// TestNullAllocatesNothing cannot run in parallel: AllocsPerRun counts the whole process.
func TestNullAllocatesNothing(t *testing.T) {
	c := dialed(t, fakedb.Null()).(everything)
	ctx, dest := t.Context(), make([]sqldriver.Value, 1)
	n := testing.AllocsPerRun(100, func() {
		_ = c.ResetSession(ctx)
		_, _ = c.ExecContext(ctx, "x", nil)
		rows, _ := c.QueryContext(ctx, "x", nil)
		_ = rows.Next(dest)
		_ = rows.Close()
		st, _ := c.Prepare("x")
		_ = st.Close()
	})
	equal(t, "allocations", n, 0)
}

func BenchmarkNull(b *testing.B) {
	db := sql.OpenDB(fakedb.Null())
	defer db.Close()
	ctx := context.Background()
	b.Run("exec", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := db.ExecContext(ctx, "x"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("queryrow", func(b *testing.B) {
		b.ReportAllocs()
		var n int64
		for b.Loop() {
			if err := db.QueryRowContext(ctx, "x").Scan(&n); err != nil {
				b.Fatal(err)
			}
		}
	})
}
