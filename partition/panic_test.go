package partition_test

import (
	"context"
	sqldriver "database/sql/driver"
	"testing"
	"testing/synctest"
	"time"

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

// Nothing has been sent then, and Exec gives the connection back.
func TestTransactionOutlivesAnArgumentThatPanics(t *testing.T) {
	t.Parallel()
	for _, without := range []fakedb.Interfaces{0, fakedb.NamedValueChecker, fakedb.ExecerContext} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(fakedb.Without(without), fakedb.WithUncountedInput()), size(workload.OLTP, 1))
			tx, err := r.db.BeginTx(oltp, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !panics(func() { tx.ExecContext(oltp, "ok", panicker{}) }) {
				t.Error("the panic did not reach the caller")
			}
			if _, err := tx.ExecContext(oltp, "ok"); err != nil {
				t.Error(err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			r.idle()
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

// Plain database/sql lets it reach its caller, too.
func TestPanicOfResetSessionReachesItsCallerAndCostsOneConnection(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, 50 * ms} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), size(workload.OLTP, 1))
			ctx, cancel := context.WithCancel(oltp)
			defer cancel()
			var given context.Context
			r.server.On(fakedb.Reset, func(ctx context.Context, _ fakedb.Call) error { given = ctx; panic("reset") })
			giveBack := r.take(workload.OLTP, 1)
			if wait == 0 {
				giveBack()
			} else {
				time.AfterFunc(wait, giveBack)
			}
			if !panics(func() { r.db.ExecContext(ctx, "ok") }) {
				t.Error("no panic")
			}
			r.replacedAfter(fakedb.Reset)
			if given.Err() == nil {
				t.Error("the context that the driver was given goes on")
			}
		})
	}
}

func TestPanicOfIsValidReachesItsCallerAndCostsOneConnection(t *testing.T) {
	t.Parallel()
	for _, call := range []func(*rig){
		func(r *rig) { r.db.ExecContext(oltp, "ok") },
		func(r *rig) { drain(r.db.QueryContext(oltp, "rows 3")) },
		func(r *rig) { r.take(workload.OLTP, 1)() },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), size(workload.OLTP, 1))
			r.server.On(fakedb.Valid, func(context.Context, fakedb.Call) error { panic("valid") })
			if !panics(func() { call(r) }) {
				t.Error("no panic")
			}
			r.replacedAfter(fakedb.Valid)
		})
	}
}

// It is closed on behalf of somebody who has long gone.
func TestPanicOverAStatementThatOthersClosedIsNoCallersAndCostsOneConnection(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, 50 * ms, 95 * ms} { // at last too late for the caller to reset it
		synctest.Test(t, func(t *testing.T) {
			log, opt := logged()
			r := setup(t, fakedb.New(), size(workload.OLTP, 1), opt)
			stmt := r.mustPrepare(oltp, "ok")
			r.server.On(fakedb.CloseStmt, func(context.Context, fakedb.Call) error { panic("close") })
			if wait == 0 {
				stmt.Close()
			} else {
				giveBack := r.take(workload.OLTP, 1)
				stmt.Close()
				time.AfterFunc(wait, giveBack)
			}
			r.mustExec(oltp, "ok")
			r.replacedAfter(fakedb.CloseStmt)
			if !contains(log.String(), "panicked") {
				t.Errorf("not logged:\n%s", log)
			}
		})
	}
}

// replacedAfter fails the test unless the panics of a kind of call have cost the pool its one connection and no permit.
func (r *rig) replacedAfter(kind fakedb.Kind) {
	r.Helper()
	r.server.On(kind, nil)
	synctest.Wait()
	r.idle()
	r.mustExec(oltp, "ok")
	if s := r.server.Stats(); s.Dials != 2 || s.Open != 1 {
		r.Errorf("%d dials, %d open", s.Dials, s.Open)
	}
}

func panics(call func()) (did bool) {
	defer func() { did = recover() != nil }()
	call()
	return false
}
