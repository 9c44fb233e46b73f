package fakedb_test

//lint:file-ignore SA1019 the fake plays drivers that have only what is deprecated

import (
	"context"
	sqldriver "database/sql/driver"
	"io"
	"testing"
	"testing/synctest"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
)

// everything is a connection with all that the misuse below calls.
type everything interface {
	sqldriver.Conn
	sqldriver.Pinger
	sqldriver.ExecerContext
	sqldriver.QueryerContext
	sqldriver.SessionResetter
	sqldriver.Validator
}

// misuse runs f on a bare driver connection, as no database/sql would.
func misuse(t *testing.T, want []string, f func(b *bench, c everything)) {
	t.Helper()
	inBubble(t, func(b *bench) {
		f(b, dial(b.T, b.s).(everything))
		b.violated(want...)
		b.s.ClearLog()
		for _, c := range b.s.Conns() {
			equal(b.T, "closed", c.Closed, true)
		}
	})
}

func TestTwoCallsAtOnceAreReported(t *testing.T) {
	misuse(t, []string{"conn 1: ping during exec"}, func(b *bench, c everything) {
		ctx, cancel := context.WithCancel(b.ctx)
		done := make(chan error)
		go func() {
			_, err := c.ExecContext(ctx, "hang", nil)
			done <- err
		}()
		synctest.Wait()
		b.nilError(c.Ping(b.ctx))
		cancel()
		b.isError(<-done, context.Canceled)
		b.nilError(c.Close())
	})
}

func TestUseAfterCloseIsReported(t *testing.T) {
	want := []string{
		"conn 1: exec after Close", "conn 1: valid after Close", "conn 1: close stmt after Close",
		"conn 1: close after Close",
	}
	misuse(t, want, func(b *bench, c everything) {
		st, err := c.Prepare("ok")
		b.nilError(err)
		b.nilError(c.Close())
		_, err = st.Exec(nil) //nolint:staticcheck // the old way in
		equal(b.T, "exec fails", err != nil, true)
		equal(b.T, "valid", c.IsValid(), false)
		b.nilError(st.Close())
		equal(b.T, "second close fails", c.Close() != nil, true)
		equal(b.T, "counted once", b.s.Stats().Closed, 1)
	})
}

func TestWhatABorrowerLeavesBehindIsReported(t *testing.T) {
	want := []string{
		"conn 1: reset with rows open", "conn 1: reset with a transaction open", "conn 1: close with a transaction open",
	}
	misuse(t, want, func(b *bench, c everything) {
		rows, err := c.QueryContext(b.ctx, "rows 3", nil)
		b.nilError(err)
		_, err = c.Begin() //nolint:staticcheck // the old way in
		b.nilError(err)
		b.nilError(c.ResetSession(b.ctx))
		b.nilError(rows.Close())
		b.nilError(c.Close())
	})
}

func TestSecondCloseOfRowsAndStatementsIsReported(t *testing.T) {
	want := []string{
		"conn 1: second Close of rows", "conn 1: next of rows after their Close",
		"conn 1: second Close of statement 1", "conn 1: exec of statement 1 after its Close",
	}
	misuse(t, want, func(b *bench, c everything) {
		st, err := c.Prepare("rows 3")
		b.nilError(err)
		rows, err := st.(sqldriver.StmtQueryContext).QueryContext(b.ctx, nil)
		b.nilError(err)
		b.nilError(rows.Close())
		equal(b.T, "second close fails", rows.Close() != nil, true)
		equal(b.T, "next fails", rows.Next(make([]sqldriver.Value, 1)) != nil, true)
		b.nilError(st.Close())
		equal(b.T, "second close fails", st.Close() != nil, true)
		_, err = st.(sqldriver.StmtExecContext).ExecContext(b.ctx, nil)
		equal(b.T, "exec fails", err != nil, true)
		b.nilError(c.Close())
	})
}

func TestTransactionsThatOverlapOrEndTwiceAreReported(t *testing.T) {
	want := []string{"conn 1: begin with a transaction open", "conn 1: end of a transaction that is not open"}
	misuse(t, want, func(b *bench, c everything) {
		tx, err := c.Begin() //nolint:staticcheck // the old way in
		b.nilError(err)
		_, err = c.Begin() //nolint:staticcheck // the old way in
		equal(b.T, "begin fails", err != nil, true)
		b.nilError(tx.Commit())
		equal(b.T, "rollback fails", tx.Rollback() != nil, true)
		b.nilError(c.Close())
	})
}

func TestRowsOfOneStatementDisturbEachOther(t *testing.T) {
	misuse(t, []string{"conn 1: query of statement 1 while rows of it are open"}, func(b *bench, c everything) {
		st, err := c.Prepare("rows 3")
		b.nilError(err)
		query := st.(sqldriver.StmtQueryContext).QueryContext
		outer, err := query(b.ctx, nil)
		b.nilError(err)
		row := make([]sqldriver.Value, 1)
		b.nilError(outer.Next(row))
		inner, err := query(b.ctx, nil)
		b.nilError(err)
		b.nilError(inner.Next(row))
		b.nilError(outer.Next(row))
		equal(b.T, "the outer loop reads the inner's cursor", row[0], any(int64(2)))
		b.nilError(inner.Close())
		b.isError(outer.Next(row), io.EOF)
		b.nilError(outer.Close())
		b.nilError(st.Close())
		b.nilError(c.Close())
	})
}

func TestRowsOfOneTextDirectlyRunDoNotDisturbEachOther(t *testing.T) {
	misuse(t, nil, func(b *bench, c everything) {
		outer, err := c.QueryContext(b.ctx, "rows 2", nil)
		b.nilError(err)
		inner, err := c.QueryContext(b.ctx, "rows 2", nil)
		b.nilError(err)
		b.nilError(inner.Close())
		b.nilError(outer.Next(make([]sqldriver.Value, 1)))
		b.nilError(outer.Close())
		b.nilError(c.Close())
	})
}

func TestCommitNeedsTheContextOfItsBegin(t *testing.T) {
	want := []string{"conn 1: close with a transaction open"}
	misuse(t, want, func(b *bench, c everything) {
		ctx, cancel := context.WithCancel(b.ctx)
		tx, err := c.(sqldriver.ConnBeginTx).BeginTx(ctx, sqldriver.TxOptions{})
		b.nilError(err)
		cancel()
		b.isError(tx.Commit(), context.Canceled)
		b.nilError(c.Close())
	})
}

func TestSecondCloseOfAConnectorIsReported(t *testing.T) {
	t.Parallel()
	s := fakedb.New()
	c := s.Connector()
	for range 2 {
		if err := c.(io.Closer).Close(); err != nil {
			t.Fatal(err)
		}
	}
	equalList(t, "violations", s.Violations(), "connector: second Close")
	_, err := c.Connect(t.Context())
	equal(t, "connect fails", err != nil, true)
}
