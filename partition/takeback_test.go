package partition_test

import (
	"cmp"
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

// lastCalls are what a borrower may still call on a connection whose guard has ended a statement.
var lastCalls = map[fakedb.Kind]func(db *sql.DB) (last func() error, err error){
	fakedb.Rollback: func(db *sql.DB) (func() error, error) {
		tx, err := db.BeginTx(oltp, nil)
		if err == nil {
			_, err = tx.Exec("hang")
		}
		return tx.Rollback, err
	},
	fakedb.CloseRows: func(db *sql.DB) (func() error, error) {
		tx, err := db.BeginTx(oltp, nil) // else rows close themselves at an error
		if err != nil {
			return nil, err
		}
		rows, err := tx.Query("rows 9")
		if err == nil {
			_, err = tx.Exec("hang")
		}
		return func() error {
			defer tx.Rollback()
			return rows.Close()
		}, err
	},
	fakedb.Ping: func(db *sql.DB) (func() error, error) {
		conn, err := db.Conn(oltp)
		if err == nil {
			_, err = conn.ExecContext(oltp, "hang")
		}
		return func() error {
			defer conn.Close()
			return partition.Raw(conn, func(c any) error { return c.(sqldriver.Pinger).Ping(context.Background()) })
		}, err
	},
}

const inTx = "close with a transaction open"

// A connection whose guard has fired is still its borrower's, who may be in the middle of the last call on it.
func TestNoLastCallRacesWithTakingItsConnectionBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after, takes time.Duration // the last call
		closed       time.Duration // the connection, by its pool
		refused      bool
		tolerates    string
	}{
		"before":    {after: 60 * ms, takes: 10 * ms, closed: 70 * ms},
		"meanwhile": {after: 60 * ms, takes: 500 * ms, closed: 560 * ms, tolerates: inTx},
		"at once":   {after: 100 * ms, takes: 10 * ms, tolerates: inTx},
		"too late":  {after: 2 * time.Second, closed: 100 * ms, refused: true, tolerates: inTx},
		"for ever":  {after: 60 * ms, takes: time.Hour, closed: 1060 * ms, tolerates: closedUnder + "|" + inTx + "|close with rows open"},
	} {
		for kind, begin := range lastCalls {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := setup(t, fakedb.New(), holding(partition.PoolConfig{MaxOpenConns: 1, StatementTimeout: 50 * ms, MaxHold: 100 * ms}))
					r.tolerates = cmp.Or(tt.tolerates, r.tolerates)
					began := time.Now()
					last, err := begin(r.db)
					if !errors.Is(err, stmttimeout.ErrExceeded) {
						t.Fatal(err)
					}
					time.Sleep(time.Until(began.Add(tt.after)))
					r.server.On(kind, func(context.Context, fakedb.Call) error { time.Sleep(tt.takes); return nil })
					refused := tt.refused && kind != fakedb.CloseRows // as if they had closed themselves
					if err := last(); errors.Is(err, partition.ErrReclaimed) != refused && name != "at once" {
						t.Errorf("the last call: %v", err)
					}
					time.Sleep(time.Second)
					r.idle()
					if closes := r.server.Calls(fakedb.CloseConn); len(closes) != 1 || tt.closed > 0 && closes[0].At.Sub(began) != tt.closed {
						t.Errorf("after %v: %v", time.Since(began), r.server.Calls())
					}
				})
			})
		}
	}
}

// As database/sql does it. An embedded engine goes on holding its locks otherwise.
func TestWhatIsOpenOnAConnectionIsClosedBeforeIt(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(r *rig){
		"taken back with rows open": func(r *rig) {
			rows, err := r.db.QueryContext(oltp, "rows 9")
			if err != nil {
				r.Fatal(err)
			}
			rows.Next()
			time.Sleep(2 * time.Second)
			if rows.Next() || !errors.Is(rows.Err(), partition.ErrReclaimed) || rows.Close() != nil {
				r.Errorf("the late holder got %v", rows.Err())
			}
		},
		"taken back in nested loops over one statement": func(r *rig) {
			tx, err := r.db.BeginTx(oltp, nil)
			if err != nil {
				r.Fatal(err)
			}
			defer tx.Rollback()
			stmt, err := tx.Prepare("rows 9")
			if err != nil {
				r.Fatal(err)
			}
			for range 3 {
				rows, err := stmt.Query()
				if err != nil {
					r.Fatal(err)
				}
				defer rows.Close()
				rows.Next()
			}
			time.Sleep(2 * time.Second)
		},
		"expired": func(r *rig) {
			stmt, err := r.db.PrepareContext(oltp, "ok")
			if err != nil {
				r.Fatal(err)
			}
			defer stmt.Close()
			time.Sleep(time.Minute)
		},
		"broken by a panic": func(r *rig) {
			rows, err := r.db.QueryContext(oltp, "rows 9 at 1 panic")
			if err != nil {
				r.Fatal(err)
			}
			defer rows.Close()
			if !panics(func() { rows.Next(); rows.Next() }) {
				r.Error("no panic")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, fakedb.New(), holding(partition.PoolConfig{MaxOpenConns: 1, MaxHold: time.Second, ConnMaxIdleTime: time.Second}))
				r.tolerates = inTx
				use(r)
				synctest.Wait()
				if s := r.server.Stats(); s.Open != 0 || s.StmtsClosed != s.Prepared {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestDriverThatHangsInCloseKeepsNoPermitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), holding(partition.PoolConfig{
			MaxOpenConns: 1, MaxHold: time.Second, StatementTimeout: partition.NoTimeout, AcquireTimeout: time.Minute}))
		r.tolerates = closedUnder
		release := make(chan struct{})
		defer close(release)
		r.server.On(fakedb.CloseConn, fakedb.First(1, fakedb.Stall(release)))
		go r.db.ExecContext(oltp, "deaf 1h")
		time.Sleep(2 * time.Second)
		r.mustExec(oltp, "ok")
		if s := r.stats(workload.OLTP); s.Reclaimed != 1 || s.EndedUnknown != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestDrainTakesBackWhatWasStillDialedAtItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), size(workload.OLTP, 1), limited(partition.NoTimeout))
		r.server.On(fakedb.Dial, fakedb.Delay(80*ms))
		done := make(chan error, 1)
		go func() {
			_, err := r.db.ExecContext(oltp, "sleep 1h")
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		if err := r.reg.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain: %v", err)
		}
		if err := <-done; !errors.Is(err, partition.ErrReclaimed) {
			t.Errorf("the statement: %v", err)
		}
		synctest.Wait()
		if s := r.server.Stats(); s.Open != 0 || s.Running != 0 {
			t.Errorf("left on the server: %+v", s)
		}
	})
}

func TestWarmsPingIsNotCutByTakingItsConnectionBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), holding(partition.PoolConfig{MaxOpenConns: 1, MaxHold: time.Second}))
		r.server.On(fakedb.Ping, fakedb.Delay(3*time.Second))
		if err := r.reg.Warm(t.Context()); !errors.Is(err, partition.ErrReclaimed) {
			t.Error(err)
		}
		synctest.Wait()
		r.idle()
	})
}
