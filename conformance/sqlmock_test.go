package conformance_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sqlmock "github.com/DATA-DOG/go-sqlmock"

	"github.com/sqlbulkhead/sqlbulkhead/conformance"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// mocks is the mock behind each handle.
var (
	mocks     sync.Map // *sql.DB: sqlmock.Sqlmock
	mockCount atomic.Int64
)

// openMock opens a handle beside the mock's own, whose connection keeps the mock alive.
func openMock(tb testing.TB, open func(dsn string) (*sql.DB, error)) *sql.DB {
	tb.Helper()
	dsn := fmt.Sprintf("conformance%d", mockCount.Add(1))
	own, mock, err := sqlmock.NewWithDSN(dsn, sqlmock.MonitorPingsOption(true), sqlmock.ValueConverterOption(takesSlices{}))
	if err != nil {
		tb.Fatal(err)
	}
	db, err := open(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	mocks.Store(db, mock)
	tb.Cleanup(func() {
		mock.ExpectClose()
		if err := own.Close(); err != nil {
			tb.Errorf("close the mock: %v", err)
		}
	})
	return db
}

// takesSlices is a converter that a test gives its mock.
type takesSlices struct{}

func (takesSlices) ConvertValue(v any) (sqldriver.Value, error) {
	if list, ok := v.([]int64); ok {
		return fmt.Sprint(list), nil
	}
	return sqldriver.DefaultParameterConverter.ConvertValue(v)
}

func TestSqlmock(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	exercise(t, conformance.Twin{
		Name: "go-sqlmock",
		Plain: func(tb testing.TB, _ int) *sql.DB {
			return openMock(tb, func(dsn string) (*sql.DB, error) { return sql.Open("sqlmock", dsn) })
		},
		Partitioned: func(tb testing.TB, _ int) *sql.DB {
			return openMock(tb, func(dsn string) (*sql.DB, error) { return partition.Open("sqlmock", dsn, quiet, patient(0)) })
		},
		Extra: mockScenarios,
	})
}

// mocked is a scenario against a mock that expects what a test of a user's would.
func mocked(name string, run func(s *conformance.Side, mock sqlmock.Sqlmock)) conformance.Scenario {
	return conformance.Scenario{Name: name, Run: func(s *conformance.Side) {
		mock, _ := mocks.Load(s.DB)
		run(s, mock.(sqlmock.Sqlmock))
		s.Note("expectations", mock.(sqlmock.Sqlmock).ExpectationsWereMet())
	}}
}

var mockScenarios = []conformance.Scenario{
	mocked("exec and query", func(s *conformance.Side, mock sqlmock.Sqlmock) {
		mock.ExpectPing()
		s.Note("ping", s.DB.PingContext(oltp))
		mock.ExpectExec("UPDATE accounts").WithArgs(1, "[1 2]").WillReturnResult(sqlmock.NewResult(7, 3))
		s.Note("exec", resultOf(s.DB.ExecContext(oltp, "UPDATE accounts SET n = ?", 1, []int64{1, 2})))
		mock.ExpectQuery("SELECT name").WillReturnRows(sqlmock.NewRows([]string{"name", "n"}).AddRow("ada", 1).AddRow(nil, 2))
		s.Note("query", read(s.DB.QueryContext(oltp, "SELECT name")))
		mock.ExpectExec("DELETE").WillReturnError(errFault)
		s.Note("exec that fails", resultOf(s.DB.ExecContext(oltp, "DELETE FROM accounts")))
		mock.ExpectQuery("SELECT").WillReturnError(sql.ErrNoRows)
		s.Note("query that fails", read(s.DB.QueryContext(oltp, "SELECT 1")))
		mock.ExpectExec("INSERT").WillReturnResult(sqlmock.NewErrorResult(errFault))
		s.Note("result that fails", resultOf(s.DB.ExecContext(oltp, "INSERT")))
	}),
	mocked("unexpected", func(s *conformance.Side, mock sqlmock.Sqlmock) {
		s.Note("nothing was expected", resultOf(s.DB.ExecContext(oltp, "DELETE FROM accounts")))
		mock.ExpectExec("UPDATE").WithArgs(1).WillReturnResult(sqlmock.NewResult(0, 1))
		s.Note("another statement", resultOf(s.DB.ExecContext(oltp, "DELETE FROM accounts", 1)))
		s.Note("other arguments", resultOf(s.DB.ExecContext(oltp, "UPDATE accounts", 2)))
		s.Note("a query", read(s.DB.QueryContext(oltp, "UPDATE accounts", 1)))
		_, err := s.DB.BeginTx(oltp, nil)
		s.Note("a transaction", err)
		s.Note("as expected", resultOf(s.DB.ExecContext(oltp, "UPDATE accounts", 1)))
	}),
	mocked("transactions", func(s *conformance.Side, mock sqlmock.Sqlmock) {
		mock.ExpectBegin()
		mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectCommit()
		tx, err := s.DB.BeginTx(oltp, &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true})
		s.Note("begin", err)
		s.Note("exec", resultOf(tx.ExecContext(oltp, "UPDATE accounts")))
		s.Note("commit", tx.Commit())
		mock.ExpectBegin()
		mock.ExpectRollback().WillReturnError(errFault)
		tx, err = s.DB.BeginTx(oltp, nil)
		s.Note("begin", err)
		s.Note("rollback", tx.Rollback())
		mock.ExpectBegin().WillReturnError(errFault)
		_, err = s.DB.BeginTx(oltp, nil)
		s.Note("begin that fails", err)
		mock.ExpectBegin()
		mock.ExpectCommit().WillReturnError(errFault)
		tx, err = s.DB.BeginTx(oltp, nil)
		s.Note("begin", err)
		s.Note("commit that fails", tx.Commit())
	}),
	mocked("prepared statements", func(s *conformance.Side, mock sqlmock.Sqlmock) {
		expected := mock.ExpectPrepare("SELECT name")
		expected.ExpectQuery().WithArgs(5).WillReturnRows(sqlmock.NewRows([]string{"name"}).AddRow("bob"))
		expected.ExpectExec().WillReturnError(errFault)
		expected.WillBeClosed()
		stmt, err := s.DB.PrepareContext(oltp, "SELECT name")
		s.Note("prepare", err)
		s.Note("query", read(stmt.QueryContext(oltp, 5)))
		_, err = stmt.ExecContext(oltp)
		s.Note("exec", err)
		s.Note("close", stmt.Close())
		mock.ExpectPrepare("SELECT").WillReturnError(errFault)
		_, err = s.DB.PrepareContext(oltp, "SELECT 2")
		s.Note("prepare that fails", err)
		mock.ExpectPrepare("SELECT").WillReturnCloseError(errFault)
		stmt, err = s.DB.PrepareContext(oltp, "SELECT 3")
		s.Note("prepare", err)
		s.Note("close that fails", stmt.Close())
	}),
	mocked("rows", func(s *conformance.Side, mock sqlmock.Sqlmock) {
		columns := []string{"n"}
		mock.ExpectQuery("one").WillReturnRows(sqlmock.NewRows(columns).AddRow(1).AddRow(2).RowError(1, errFault))
		s.Note("row that fails", read(s.DB.QueryContext(oltp, "one")))
		mock.ExpectQuery("two").WillReturnRows(sqlmock.NewRows(columns).AddRow(1).CloseError(errFault))
		s.Note("close that fails", read(s.DB.QueryContext(oltp, "two")))
		mock.ExpectQuery("three").WillReturnRows(sqlmock.NewRows(columns).AddRow(1), sqlmock.NewRows([]string{"a", "b"}).AddRow("x", nil))
		s.Note("two result sets", read(s.DB.QueryContext(oltp, "three")))
		mock.ExpectQuery("four").WillReturnRows(mock.NewRowsWithColumnDefinition(
			mock.NewColumn("n").OfType("NUMERIC", 1.5).WithPrecisionAndScale(8, 2).Nullable(true),
			mock.NewColumn("s").OfType("VARCHAR", "").WithLength(10)).AddRow(1.5, "x"))
		rows, err := s.DB.QueryContext(oltp, "four")
		s.Note("query", err)
		types, err := rows.ColumnTypes()
		s.Note("column types", len(types), err)
		for _, c := range types {
			precision, scale, decimal := c.DecimalSize()
			length, variable := c.Length()
			nullable, known := c.Nullable()
			s.Note("column", c.DatabaseTypeName(), c.ScanType(), precision, scale, decimal, length, variable, nullable, known)
		}
		s.Note("close", rows.Close())
	}),
	mocked("bad connections", func(s *conformance.Side, mock sqlmock.Sqlmock) {
		mock.ExpectExec("UPDATE").WillReturnError(sqldriver.ErrBadConn)
		mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1))
		s.Note("exec", resultOf(s.DB.ExecContext(oltp, "UPDATE")))
		for range 3 {
			mock.ExpectExec("UPDATE").WillReturnError(sqldriver.ErrBadConn)
		}
		s.Note("exec thrice", resultOf(s.DB.ExecContext(oltp, "UPDATE")))
	}),
	mocked("cancelled while a statement runs", func(s *conformance.Side, mock sqlmock.Sqlmock) {
		mock.ExpectPing()
		s.Note("ping", s.DB.PingContext(oltp)) // the deadline is not for the dial
		mock.ExpectQuery("SELECT").WillDelayFor(time.Minute).WillReturnRows(sqlmock.NewRows([]string{"n"}).AddRow(1))
		ctx, cancel := context.WithTimeout(oltp, 20*time.Millisecond)
		defer cancel()
		s.Note("query", read(s.DB.QueryContext(ctx, "SELECT 1")))
		mock.ExpectPing()
		s.Note("ping", s.DB.PingContext(oltp)) // nor for a dial where the connection was lost
		mock.ExpectExec("UPDATE").WillDelayFor(time.Minute).WillReturnResult(sqlmock.NewResult(0, 1))
		ctx, cancel = context.WithTimeout(oltp, 20*time.Millisecond)
		defer cancel()
		s.Note("exec", resultOf(s.DB.ExecContext(ctx, "UPDATE")))
	}),
}

func resultOf(res sql.Result, err error) any {
	if err != nil {
		return err
	}
	id, idErr := res.LastInsertId()
	n, nErr := res.RowsAffected()
	return []any{id, idErr, n, nErr}
}
