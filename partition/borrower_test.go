package partition_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// What one borrower does to its session must stay with it, and be all there until it lets go.

func TestSessionIsNotReplacedBehindTheBackOfRaw(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.mustExec(oltp, "ok")
		r.mustExec(reporting, "ok") // takes the one virtual connection, so that the next oltp checkout is a Connect
		conn, err := r.db.Conn(oltp)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var id int
		partition.Raw(conn, func(c any) error { id = fakedb.ConnID(c); return nil }) // takes a lock there, say
		r.server.Kill(id)
		var now int
		if err := conn.QueryRowContext(oltp, "id").Scan(&now); err == nil {
			t.Errorf("went on as if nothing had happened, on connection %d instead of %d", now, id)
		}
	})
}

func TestCallUnderAnotherContextThanTheCheckoutsIsNotCancelledWithIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.fill(workload.OLTP, 1)
		ctx, cancel := context.WithCancel(oltp)
		conn, err := r.db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		time.AfterFunc(10*ms, cancel)
		if _, err := conn.ExecContext(oltp, "sleep 50ms"); err != nil {
			t.Error(err)
		}
	})
}

func TestCommitHasThePoolsLimitNotThatOfBegin(t *testing.T) {
	t.Parallel()
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), limited(time.Second))
			r.server.On(fakedb.Commit, fakedb.Delay(300*ms))
			r.server.On(fakedb.Rollback, fakedb.Delay(300*ms))
			tx, err := r.db.BeginTx(stmttimeout.With(oltp, 50*ms), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := end(tx); err != nil {
				t.Error(err)
			}
			r.mustExec(oltp, "ok")
			if n := r.server.Stats().Dials; n != 1 {
				t.Errorf("%d dials: the connection was thrown away", n)
			}
		})
	}
}

func TestSessionIsRestoredOnceNotAtEveryCheckout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, postgresLike(""), size(workload.OLTP, 1), limited(200*ms), asPostgres)
		r.mustExec(oltp, "set statement_timeout=0")
		r.server.ClearLog()
		for range 5 {
			r.mustExec(oltp, "ok")
		}
		if n := len(r.server.Calls(fakedb.Exec)); n != 6 {
			t.Errorf("%d statements for 5 and one restore", n)
		}
	})
}

func TestRowsThatAreThereCanBeFetchedAfterTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), limited(200*ms))
		if err := drain(r.db.QueryContext(oltp, "rows 40 sleep 5ms")); err != nil {
			t.Errorf("200 ms in all: %v", err)
		}
	})
}

func TestCancelAfterTheLimitOfALocalisedServerIsStillACancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), limited(200*ms), asPostgres) // it does not keep to its timeout
		s := r.server
		s.Handle(func(ctx context.Context, c fakedb.Call) (*fakedb.Answer, error) {
			if c.Text != "slow" {
				return nil, nil
			}
			<-ctx.Done()
			return nil, &fakedb.Error{Code: "57014", Message: "storniere Anfrage wegen Benutzeraufforderung"}
		})
		ctx, cancel := context.WithTimeout(oltp, 300*ms)
		defer cancel()
		if _, err := r.db.ExecContext(ctx, "slow"); err == nil || errors.Is(err, stmttimeout.ErrExceeded) {
			t.Errorf("the caller cancelled it: %v", err)
		}
	})
}

// database/sql closes the statements of a connection that is bad under the lock that all workloads share.
func TestStatementOfABadConnectionIsClosedBehindTheBackOfDatabaseSQL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		stmt := r.mustPrepare(oltp, "ok")
		conn, err := r.db.Conn(oltp) // the same virtual connection
		if err != nil {
			t.Fatal(err)
		}
		stmt.Close() // waits for its return
		r.server.On(fakedb.CloseStmt, fakedb.Delay(500*ms))
		began := time.Now()
		partition.Raw(conn, func(any) error { return sqldriver.ErrBadConn })
		if took := time.Since(began); took > 0 {
			t.Errorf("database/sql was held up for %v", took)
		}
		time.Sleep(time.Second)
		if s := r.server.Stats(); s.StmtsClosed != 1 || s.Open != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestFailingPrepareOnAnotherConnectionKeepsItsType(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakedb.New(fakedb.WithStmtChecker(func(*sqldriver.NamedValue) error { return sqldriver.ErrSkip }))
		r := setup(t, s)
		pool := r.pool(workload.OLTP).DB()
		first, _ := pool.Conn(oltp)
		stmt := r.mustPrepare(oltp, "args ?") // on the second connection
		defer stmt.Close()
		second, _ := pool.Conn(oltp)
		defer second.Close()
		first.Close() // the only one that is free now
		own := &fakedb.Error{Code: "42P01", Message: "no such table"}
		s.On(fakedb.Prepare, fakedb.Fail(own))
		if _, err := stmt.ExecContext(oltp, 1); err != own {
			t.Errorf("got %T %v", err, err)
		}
		s.On(fakedb.Prepare, nil)
		if _, err := stmt.ExecContext(oltp, 1); err != nil {
			t.Error(err)
		}
	})
}

// go-sql-driver leaves a query with arguments to a prepared statement. On MySQL that is still a SELECT, which the server
// itself ends at its limit.
func TestSkippedSelectKeepsTheGraceOfItsServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakedb.New(fakedb.Without(fakedb.QueryerContext), fakedb.WithCancelBreaks())
		s.Handle(func(ctx context.Context, c fakedb.Call) (*fakedb.Answer, error) {
			if c.Text != "SELECT slow" {
				return nil, nil
			}
			return nil, fakedb.Delay(time.Hour)(ctx, c)
		})
		r := setup(t, s, limited(200*ms), partition.WithDialect(pgDialect{stmttimeout.MySQL()}))
		began := time.Now()
		err := drain(r.db.QueryContext(oltp, "SELECT slow"))
		if took := time.Since(began); !errors.Is(err, stmttimeout.ErrExceeded) || took != 700*ms {
			t.Errorf("%v after %v, want 200ms and the grace", err, took)
		}
	})
}

// An argument that only the column's converter knows, with a driver that has nothing but prepared statements.
type celsius float32

type toString struct{}

func (toString) ConvertValue(v any) (sqldriver.Value, error) {
	if c, ok := v.(celsius); ok && c > 0 {
		return "warm", nil
	}
	return sqldriver.DefaultParameterConverter.ConvertValue(v)
}

func TestColumnConverterOfAnOldDriverSeesTheArguments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakedb.New(fakedb.Without(fakedb.AllConn), fakedb.WithConverter(func(int) sqldriver.ValueConverter { return toString{} }))
		r := setup(t, s)
		plain := sql.OpenDB(s.Connector())
		defer plain.Close()
		for _, db := range []*sql.DB{plain, r.db} {
			if _, err := db.ExecContext(oltp, "ok ?", complexArg{}); err == nil {
				t.Error("a value that nobody converts was accepted")
			}
			if _, err := db.ExecContext(oltp, "ok ?", celsius(20)); err != nil {
				t.Error(err)
			}
		}
	})
}

type complexArg struct{ _ chan int }

func TestPanickingObserverLosesNoPermit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithObserver(panickingObserver{}), size(workload.OLTP, 2))
		for range 5 {
			if !panics(func() { r.db.ExecContext(oltp, "ok") }) {
				t.Error("no panic")
			}
		}
		synctest.Wait()
		r.idle()
	})
}

type panickingObserver struct{}

func (panickingObserver) AcquireDone(context.Context, partition.AcquireEvent) { panic("observer") }
