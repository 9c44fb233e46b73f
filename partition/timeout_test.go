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

func limited(d time.Duration) partition.Option {
	return partition.WithPool(workload.OLTP, partition.PoolConfig{StatementTimeout: d})
}

// statements are all paths on which a statement can run into its limit.
var statements = []struct {
	name string
	run  func(ctx context.Context, db *sql.DB, text string) error
}{
	{"Exec", func(ctx context.Context, db *sql.DB, text string) error {
		_, err := db.ExecContext(ctx, text)
		return err
	}},
	{"Query", func(ctx context.Context, db *sql.DB, text string) error { return drain(db.QueryContext(ctx, text)) }},
	{"QueryRow", func(ctx context.Context, db *sql.DB, text string) error {
		var v int
		return db.QueryRowContext(ctx, text).Scan(&v)
	}},
	{"Stmt.Exec", func(ctx context.Context, db *sql.DB, text string) error {
		stmt, err := db.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		defer stmt.Close()
		_, err = stmt.ExecContext(ctx)
		return err
	}},
	{"Stmt.Query", func(ctx context.Context, db *sql.DB, text string) error {
		stmt, err := db.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		defer stmt.Close()
		return drain(stmt.QueryContext(ctx))
	}},
	{"Tx", func(ctx context.Context, db *sql.DB, text string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		_, err = tx.ExecContext(ctx, text)
		return err
	}},
	{"Conn", func(ctx context.Context, db *sql.DB, text string) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		return drain(conn.QueryContext(ctx, text))
	}},
}

func drain(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func TestGuardEndsStatementsExactlyAtTheirLimitWhereTheServerDoesNot(t *testing.T) {
	t.Parallel()
	for _, st := range statements {
		for _, kind := range []string{"background", "cancellable"} {
			t.Run(st.name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := setup(t, fakedb.New(fakedb.WithCancelBreaks()), limited(200*ms))
					ctx := oltp
					if kind == "cancellable" {
						var cancel context.CancelFunc
						ctx, cancel = context.WithCancel(oltp)
						defer cancel()
					}
					began := time.Now()
					err := st.run(ctx, r.db, "hang")
					if took := time.Since(began); took != 200*ms {
						t.Errorf("ended after %v", took)
					}
					if !errors.Is(err, stmttimeout.ErrExceeded) || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v", err)
					}
					if errors.Is(err, context.Canceled) || errors.Is(err, sqldriver.ErrBadConn) {
						t.Errorf("%v Is an error of the way in which it was ended", err)
					}
					var e *stmttimeout.Error
					if !errors.As(err, &e) || e.Limit != 200*ms || e.ByServer {
						t.Errorf("%+v", e)
					}
					synctest.Wait()
					r.idle()
					r.mustExec(oltp, "ok")
					if s := r.stats(workload.OLTP); s.StatementTimeouts != 1 {
						t.Errorf("counted %d", s.StatementTimeouts)
					}
				})
			})
		}
	}
}

// postgresLike is a fake that speaks enough of PostgreSQL to be set up, and keeps to the timeout itself.
func postgresLike(flavour string, opts ...fakedb.Option) *fakedb.Server {
	return fakedb.New(append(opts, fakedb.WithTimeoutSetting("statement_timeout", time.Millisecond, flavour))...)
}

// pgDialect sets the fake's timeout, and otherwise is PostgreSQL's dialect.
type pgDialect struct{ stmttimeout.Dialect }

func (pgDialect) Setup(ctx context.Context, s stmttimeout.Session, want stmttimeout.Settings) (stmttimeout.Applied, error) {
	set := "set statement_timeout=" + want.StatementTimeout.String()
	err := s.Exec(ctx, set)
	return stmttimeout.Applied{
		Enforcement:      stmttimeout.EnforcedBySession,
		StatementTimeout: want.StatementTimeout,
		Restore:          []string{set},
	}, err
}

var asPostgres = partition.WithDialect(pgDialect{stmttimeout.Postgres()})

func TestServersOwnTimeoutIsRecognisedOnEveryPath(t *testing.T) {
	t.Parallel()
	for _, flavour := range []string{"", "de"} {
		for _, st := range statements {
			for _, text := range []string{"sleep 2s", "rows 5 at 3 sleep 2s"} {
				if text != "sleep 2s" && (st.name == "Exec" || st.name == "Tx" || st.name == "Stmt.Exec" || st.name == "QueryRow") {
					continue
				}
				t.Run(flavour+"/"+st.name+"/"+text, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := setup(t, postgresLike(flavour), limited(200*ms), asPostgres)
						began := time.Now()
						err := st.run(oltp, r.db, text)
						if took := time.Since(began); took != 200*ms {
							t.Errorf("ended after %v", took)
						}
						var e *stmttimeout.Error
						if !errors.As(err, &e) || !e.ByServer || e.Limit != 200*ms {
							t.Fatalf("%v (%+v)", err, e)
						}
						var own *fakedb.Error
						if !errors.As(err, &own) || own.SQLState() != "57014" {
							t.Errorf("the driver's own error is gone: %v", err)
						}
						r.mustExec(oltp, "ok")
						if n := r.server.Stats().Dials; n != 1 {
							t.Errorf("the connection was thrown away: %d dials", n)
						}
					})
				})
			}
		}
	}
}

func TestCancelledStatementIsNoTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, postgresLike(""), limited(200*ms), asPostgres)
		for _, text := range []string{"cancel", "cancel de"} {
			_, err := r.db.ExecContext(oltp, text)
			var own *fakedb.Error
			if errors.Is(err, stmttimeout.ErrExceeded) || !errors.As(err, &own) {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

func TestGuardStandsBehindAServerThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(fakedb.WithCancelBreaks()), limited(200*ms), asPostgres) // it takes the setting and does not keep to it
		began := time.Now()
		_, err := r.db.ExecContext(oltp, "hang")
		if took := time.Since(began); !errors.Is(err, stmttimeout.ErrExceeded) || took <= 200*ms || took > time.Second {
			t.Errorf("%v after %v", err, took)
		}
		synctest.Wait()
		r.idle()
	})
}

func TestWithTightensOneCallAndNeverLoosens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), limited(200*ms))
		for _, c := range []struct{ with, want time.Duration }{{50 * ms, 50 * ms}, {0, 200 * ms}, {time.Hour, 200 * ms}, {50 * ms, 50 * ms}} {
			began := time.Now()
			_, err := r.db.ExecContext(stmttimeout.With(oltp, c.with), "hang")
			if took := time.Since(began); !errors.Is(err, stmttimeout.ErrExceeded) || took != c.want {
				t.Errorf("With(%v): %v after %v", c.with, err, took)
			}
		}
	})
}

func TestLimitGivenToBeginTxIsForBeginAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), limited(time.Second))
		tx, err := r.db.BeginTx(stmttimeout.With(oltp, 50*ms), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(oltp, "sleep 300ms"); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * ms)
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	})
}

// Nothing comes between BEGIN and its end here: no call that tells the guard another limit.
func TestEmptyTransactionEndsUnderTheLimitOfItsEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ begin, think, commit time.Duration }{
		{10 * time.Second, 30 * time.Second, 5 * time.Second},
		{50 * ms, 30 * ms, 100 * ms},
	} {
		for name, end := range map[string]func(*sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback} {
			synctest.Test(t, func(t *testing.T) {
				server := postgresLike("")
				r := setup(t, server, asPostgres, limited(10*time.Second))
				tx, err := r.db.BeginTx(stmttimeout.With(oltp, c.begin), nil)
				if err != nil {
					t.Fatal(err)
				}
				server.On(fakedb.Commit, fakedb.Delay(c.commit))
				server.On(fakedb.Rollback, fakedb.Delay(c.commit))
				time.Sleep(c.think)
				if err := end(tx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
}

// P11
func TestSlowConsumerIsNotASlowStatement(t *testing.T) {
	t.Parallel()
	for _, opt := range []partition.Option{asPostgres, partition.WithDialect(stmttimeout.ClientOnly())} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, fakedb.New(), limited(200*ms), opt)
			rows, err := r.db.QueryContext(oltp, "rows 5")
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for rows.Next() {
				n++
				time.Sleep(time.Second)
			}
			if n != 5 || rows.Err() != nil {
				t.Errorf("%d rows, %v", n, rows.Err())
			}
			r.mustExec(oltp, "ok")
			if d := r.server.Stats().Dials; d != 1 {
				t.Error("the connection was thrown away")
			}
		})
	}
}

func TestTimeInsideTheRowsCountsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), limited(200*ms))
		began := time.Now()
		err := drain(r.db.QueryContext(oltp, "rows 100 sleep 15ms"))
		if took := time.Since(began); !errors.Is(err, stmttimeout.ErrExceeded) || took < 190*ms || took > 230*ms {
			t.Errorf("%v after %v", err, took)
		}
		synctest.Wait()
		r.idle()
	})
}

func TestStatementAfterATimeoutInATransactionSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(fakedb.WithCancelBreaks()), limited(200*ms))
		tx, err := r.db.BeginTx(oltp, nil)
		if err != nil {
			t.Fatal(err)
		}
		tx.Exec("hang")
		if _, err := tx.Exec("ok"); !errors.Is(err, stmttimeout.ErrExceeded) {
			t.Errorf("next statement: %v", err)
		}
		if err := tx.Commit(); !errors.Is(err, stmttimeout.ErrExceeded) {
			t.Errorf("Commit: %v", err)
		}
		synctest.Wait()
		r.idle()
	})
}

// hangUntilClosed has calls of a kind hang as those do that have no context: until their connection is closed.
func (r *rig) hangUntilClosed(kind fakedb.Kind) {
	closed := make(chan struct{})
	r.server.On(kind, func(context.Context, fakedb.Call) error {
		<-closed
		return errors.New("closed")
	})
	r.server.On(fakedb.CloseConn, func(_ context.Context, call fakedb.Call) error {
		if call.N == 1 {
			close(closed)
		}
		return nil
	})
	r.tolerates = "close during|after Close|close with"
}

// It is under way when its context ends, and nobody could say what became of it if it were broken off.
func TestCommitThatOutlastsItsContextIsLeftToThePoolsLimitAsInPlain(t *testing.T) {
	t.Parallel()
	commit := func(t *testing.T, s *fakedb.Server, db *sql.DB) error {
		ctx, cancel := context.WithTimeout(oltp, 200*ms)
		defer cancel()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.On(fakedb.Commit, func(context.Context, fakedb.Call) error {
			time.Sleep(4 * time.Second)
			return nil
		})
		return tx.Commit()
	}
	for _, limit := range []time.Duration{partition.NoTimeout, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := fakedb.New()
			r := setup(t, s, limited(limit))
			if err := commit(t, s, r.db); err != nil {
				t.Error(err)
			}
			plainServer := fakedb.New()
			plain := sql.OpenDB(plainServer.Connector())
			defer plain.Close()
			if err := commit(t, plainServer, plain); err != nil {
				t.Errorf("plain: %v", err)
			}
		})
	}
}

func TestEndWithoutContextIsBrokenOffASecondAfterItsLimit(t *testing.T) {
	t.Parallel()
	const limit = 200 * ms
	for _, kind := range []fakedb.Kind{fakedb.CloseRows, fakedb.Commit, fakedb.Rollback} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, fakedb.New(), limited(limit))
				tx, err := r.db.BeginTx(oltp, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback()
				r.hangUntilClosed(kind)
				began := time.Now()
				drain(tx.QueryContext(oltp, "rows 3"))
				if kind == fakedb.Commit {
					tx.Commit()
				}
				tx.Rollback()
				if took := time.Since(began); took < limit+time.Second || took > 2*limit+time.Second {
					t.Errorf("ended after %v", took)
				}
				synctest.Wait()
				r.idle()
			})
		})
	}
}

func TestEndWithoutContextIsBrokenOffAfterASecondWhereAStatementTimedOutBefore(t *testing.T) {
	t.Parallel()
	const limit = 200 * ms
	for _, kind := range []fakedb.Kind{fakedb.CloseRows, fakedb.Rollback} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, fakedb.New(), limited(limit))
				tx, err := r.db.BeginTx(oltp, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.hangUntilClosed(kind)
				began := time.Now()
				if err := drain(tx.QueryContext(oltp, "rows 3 at 1 hang")); !errors.Is(err, stmttimeout.ErrExceeded) {
					t.Error(err)
				}
				tx.Rollback()
				if took := time.Since(began); took != limit+time.Second {
					t.Errorf("ended after %v", took)
				}
				synctest.Wait()
				r.idle()
			})
		})
	}
}

func TestLateGuardNeverEndsTheNextCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), limited(200*ms))
		for range 50 {
			r.mustExec(oltp, "sleep 150ms")
		}
		if d := r.server.Stats().Dials; d != 1 {
			t.Errorf("%d dials", d)
		}
	})
}

func TestPoolWithoutTimeoutHasNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		r.mustExec(in(workload.Admin), "sleep 24h")
		if _, err := r.db.ExecContext(stmttimeout.With(in(workload.Admin), time.Second), "sleep 24h"); !errors.Is(err, stmttimeout.ErrExceeded) {
			t.Errorf("tightened: %v", err)
		}
	})
}

func TestOtherDriverErrorsComeAsTheyAre(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New())
		for _, st := range statements {
			err := st.run(oltp, r.db, "error 23505")
			if _, ok := err.(*fakedb.Error); !ok {
				t.Errorf("%s: %T", st.name, err)
			}
		}
	})
}

// P14
func TestSettingsOfABorrowerStayOutOfTheNextSession(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"set statement_timeout=0", "reset all", "discard all", "SET SESSION statement_timeout TO '1h'"} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, postgresLike(""), size(workload.OLTP, 1), limited(200*ms), asPostgres)
			r.mustExec(oltp, text)
			var v string
			if err := r.db.QueryRowContext(oltp, "show statement_timeout").Scan(&v); err != nil || v != "200ms" {
				t.Errorf("after %q: %q, %v", text, v, err)
			}
		})
	}
}

func TestSettingsChangedThroughRawStayOutOfTheNextSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, postgresLike(""), size(workload.OLTP, 1), limited(200*ms), asPostgres)
		conn, err := r.db.Conn(oltp)
		if err != nil {
			t.Fatal(err)
		}
		err = partition.Raw(conn, func(c any) error {
			_, err := c.(sqldriver.ExecerContext).ExecContext(oltp, "set statement_timeout=0", nil)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		var v string
		if err := r.db.QueryRowContext(oltp, "show statement_timeout").Scan(&v); err != nil || v != "200ms" {
			t.Errorf("%q, %v", v, err)
		}
	})
}

type spanKey struct{}

func TestDriverSeesTheValuesOfTheCallersContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakedb.New(fakedb.WithProbe(func(ctx context.Context) any { return ctx.Value(spanKey{}) }))
		r := setup(t, s)
		cancellable, cancel := context.WithCancel(oltp)
		defer cancel()
		for _, parent := range []context.Context{oltp, cancellable} {
			ctx := context.WithValue(parent, spanKey{}, "span")
			for _, entry := range entryPoints {
				s.ClearLog()
				if err := entry.call(ctx, r.db); err != nil {
					t.Fatal(err)
				}
				for _, c := range s.Calls(fakedb.Exec, fakedb.Query, fakedb.Prepare, fakedb.Begin, fakedb.Ping, fakedb.Reset) {
					if c.Text != "SELECT version()" && c.Seen != "span" {
						t.Errorf("%s: %v saw %v", entry.name, c, c.Seen)
					}
				}
			}
		}
	})
}
