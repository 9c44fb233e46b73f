package partition_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Where the driver cannot both reset and validate a session, database/sql closes a *sql.Conn with a transaction whose context
// ends. It must not look as if the session went on, which pgx's does not.
func TestConnOfACancelledTransactionIsKeptWhereItIsInPlain(t *testing.T) {
	t.Parallel()
	ends := map[string]func(context.CancelFunc, *sql.Tx){
		"cancel":   func(cancel context.CancelFunc, _ *sql.Tx) { cancel() },
		"rollback": func(_ context.CancelFunc, tx *sql.Tx) { tx.Rollback() },
	}
	for _, without := range []fakedb.Interfaces{0, fakedb.SessionResetter, fakedb.Validator, fakedb.SessionResetter | fakedb.Validator} {
		for name, end := range ends {
			t.Run(fmt.Sprint(without, " ", name), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					plain := sql.OpenDB(fakedb.New(fakedb.Without(without)).Connector())
					defer plain.Close()
					r := setup(t, fakedb.New(fakedb.Without(without)), size(workload.OLTP, 1))
					want, got := afterTxOfConn(t, plain, end), afterTxOfConn(t, r.db, end)
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%v, in plain %v", got, want)
					}
					r.idle()
					r.mustExec(oltp, "ok")
				})
			})
		}
	}
}

// afterTxOfConn are the errors of what is done with a connection after a transaction of it has ended.
func afterTxOfConn(t *testing.T, db *sql.DB, end func(context.CancelFunc, *sql.Tx)) (errs []error) {
	t.Helper()
	conn, err := db.Conn(oltp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stmt, err := conn.PrepareContext(oltp, "ok")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(oltp)
	defer cancel()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	end(cancel, tx)
	time.Sleep(time.Second)
	_, execErr := conn.ExecContext(oltp, "ok")
	_, stmtErr := stmt.ExecContext(oltp)
	again, beginErr := conn.BeginTx(oltp, nil)
	if beginErr == nil {
		again.Rollback()
	}
	return []error{execErr, stmtErr, beginErr, conn.PingContext(oltp)}
}

// The connection goes, and what the transaction had prepared is closed all the same: only then does its text go, too.
func TestCancelledTransactionLeavesNoPermitAndNoStatement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(fakedb.Without(fakedb.Validator)), size(workload.OLTP, 1))
		stmt := r.mustPrepare(oltp, "ok")
		for range 3 {
			ctx, cancel := context.WithCancel(oltp)
			tx, err := r.db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			own := tx.StmtContext(ctx, stmt)
			cancel()
			synctest.Wait()
			r.idle()
			if _, err := own.ExecContext(oltp); err == nil || !contains(err.Error(), "closed") {
				t.Errorf("the transaction's statement is not closed: %v", err)
			}
		}
	})
}
