package partition_test

import (
	"context"
	sqldriver "database/sql/driver"
	"testing"
	"testing/synctest"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

type panicker struct{}

func (panicker) Value() (sqldriver.Value, error) { panic("valuer") }

func TestPanicsLoseNoPermit(t *testing.T) {
	t.Parallel()
	for _, without := range []fakedb.Interfaces{0, fakedb.NamedValueChecker} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(fakedb.Without(without), fakedb.WithUncountedInput()), size(workload.OLTP, 2))
			r.tolerates = "close with" // rows or a transaction open: there is no better end for them after a panic
			calls := []func(){
				func() { r.db.ExecContext(oltp, "panic") },
				func() { r.db.QueryContext(oltp, "panic") },
				func() { drain(r.db.QueryContext(oltp, "rows 3 at 1 panic")) },
				func() { r.db.ExecContext(oltp, "ok", panicker{}) },
				func() { r.db.QueryContext(oltp, "args", panicker{}) },
				func() {
					stmt, err := r.db.PrepareContext(oltp, "args")
					if err != nil {
						t.Error(err)
						return
					}
					defer stmt.Close()
					stmt.QueryContext(oltp, panicker{})
				},
				func() {
					rows, err := r.db.QueryContext(oltp, "rows 3 at 1 panic")
					if err != nil {
						t.Error(err)
						return
					}
					defer rows.Close()
					rows.Next()
					rows.Next()
				},
				func() {
					tx, err := r.db.BeginTx(oltp, nil)
					if err != nil {
						t.Error(err)
						return
					}
					defer tx.Rollback()
					tx.ExecContext(oltp, "panic")
				},
				func() {
					conn, err := r.db.Conn(oltp)
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close()
					partition.Raw(conn, func(any) error { panic("raw") })
				},
			}
			for range 3 {
				for i, call := range calls {
					if !panics(call) {
						t.Errorf("call %d did not panic on", i)
					}
				}
			}
			synctest.Wait()
			r.idle()
			r.take(workload.OLTP, 2)()
		})
	}
}

func TestPanicOfADialReachesItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.server.On(fakedb.Dial, func(context.Context, fakedb.Call) error { panic("dialler") })
		for range 15 {
			if !panics(func() { r.db.ExecContext(oltp, "ok") }) {
				t.Fatal("no panic")
			}
		}
		r.server.On(fakedb.Dial, nil)
		r.idle()
		r.mustExec(oltp, "ok")
	})
}

func TestPanicInCloseDoesNotEndTheProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := logged()
		r := setup(t, fakedb.New(), opt)
		r.server.On(fakedb.CloseConn, fakedb.First(1, func(context.Context, fakedb.Call) error { panic("close") }))
		r.db.ExecContext(oltp, "badconn wrapped")
		synctest.Wait()
		r.idle()
		if !contains(log.String(), "panicked") {
			t.Errorf("not logged:\n%s", log)
		}
	})
}

// The call goes on although it was cancelled, so that its connection is closed under it, by a timer.
func TestPanicInCloseUnderACallDoesNotEndTheProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, opt := logged()
		r := setup(t, fakedb.New(), opt, limited(50*ms))
		r.tolerates = closedUnder
		r.server.On(fakedb.CloseConn, func(context.Context, fakedb.Call) error { panic("close") })
		r.db.ExecContext(oltp, "deaf 1m")
		synctest.Wait()
		r.idle()
		if n := len(r.server.Calls(fakedb.CloseConn)); n != 1 || !contains(log.String(), "panicked") {
			t.Errorf("closed %d times, and logged:\n%s", n, log)
		}
	})
}

func panics(call func()) (did bool) {
	defer func() { did = recover() != nil }()
	call()
	return false
}
