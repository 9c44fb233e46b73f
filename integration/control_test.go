package integration

import (
	"bytes"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// proxied leads to one server and then to another, as a proxy before several does.
type proxied struct {
	servers [2]sqldriver.Connector
	second  atomic.Bool
}

func (p *proxied) Driver() sqldriver.Driver { return p.servers[0].Driver() }

func (p *proxied) Connect(ctx context.Context) (sqldriver.Conn, error) {
	if p.second.Load() {
		return p.servers[1].Connect(ctx)
	}
	return p.servers[0].Connect(ctx)
}

func connectorOf(t *testing.T, tg target, dsn string) sqldriver.Connector {
	t.Helper()
	db, err := sql.Open(tg.driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := db.Driver().(sqldriver.DriverContext).OpenConnector(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// transcript is a log that can be read while it is written.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *transcript) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// cutShort gives a statement of the batch pool up, and waits until its permit is back.
func (r *rig) cutShort() {
	r.Helper()
	r.giveUp(r.target.slow)
	r.settled()
}

// giveUp runs a statement in the batch pool whose caller gives it up after 200 ms, and returns when that was begun.
func (r *rig) giveUp(statement string) (began time.Time) {
	r.Helper()
	began = time.Now()
	ctx, cancel := context.WithTimeout(in(workload.Batch), 200*ms)
	defer cancel()
	if _, err := r.db.ExecContext(ctx, statement); err == nil {
		r.Fatal("the statement was not cancelled")
	}
	between(r, "the caller's return", time.Since(began), 200*ms, 300*ms)
	return began
}

func TestNothingIsEndedOnAnotherServerAndThatIsSaid(t *testing.T) {
	startOther := map[string]func(testing.TB) *testserver.Server{"pgx": testserver.StartPostgres, "mariadb": testserver.StartMariaDB}
	on(t, []target{pgx, mariadb}, func(t *testing.T, tg target) {
		var log transcript
		way := &proxied{servers: [2]sqldriver.Connector{
			connectorOf(t, tg, tg.dsn(t)), connectorOf(t, tg, startOther[tg.name](t).DSN),
		}}
		db, err := partition.OpenDB(way, patient(), pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 1}),
			partition.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		reg, _ := partition.RegistryOf(db)
		r := &rig{TB: t, target: tg, db: db, reg: reg}
		const said = "connected to another server"

		for range 2 {
			way.second.Store(false)
			ask(t, in(workload.Batch), db, "SELECT 5")
			way.second.Store(true)
			r.cutShort()
		}
		s := r.stats(workload.Batch)
		if s.EndedUnknown != 2 || s.EndedConfirmed+s.EndedForced != 0 || !strings.Contains(s.EndProblem, said) {
			t.Errorf("led to another server: %+v", s)
		}
		if n := log.count(said); n != 1 {
			t.Errorf("logged %d times", n)
		}

		way.second.Store(false)
		r.cutShort()
		if s := r.stats(workload.Batch); s.EndedUnknown != 2 || s.EndedConfirmed+s.EndedForced != 1 || s.EndProblem != "" {
			t.Errorf("led to the right one again: %+v", s)
		}
	})
}

// The account's one session is the statement's: there is none left to end it from. (The drivers of PostgreSQL end their
// own statements without one.)
func TestStatementThatCannotBeEndedCostsItsCallerNothingAndIsSaid(t *testing.T) {
	on(t, []target{mariadb}, func(t *testing.T, tg target) {
		admin, err := sql.Open(tg.driver, tg.dsn(t))
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close()
		lonely := fmt.Sprintf("lonely%d", tables.Add(1))
		for _, text := range []string{"CREATE USER %s@'%%' WITH MAX_USER_CONNECTIONS 1", "GRANT SELECT ON *.* TO %s@'%%'"} {
			if _, err := admin.Exec(fmt.Sprintf(text, lonely)); err != nil {
				t.Fatal(err)
			}
		}
		defer admin.Exec("DROP USER " + lonely)
		r := setupOn(t, tg, withUser(t, tg.dsn(t), lonely), pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 1}))
		r.cutShort()
		if s := r.stats(workload.Batch); s.EndedUnknown != 1 || !strings.Contains(s.EndProblem, "max_user_connections") {
			t.Errorf("%+v", s)
		}
	})
}

// pgx, which asks a session that was used a moment ago for no sign of life, learns of it from the question's own error.
func TestStatementIsEndedAlthoughTheSessionsToDoItOverWereKilled(t *testing.T) {
	on(t, []target{pgx, mariadb}, func(t *testing.T, tg target) {
		w := watch(t, tg, patient(), pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 1}))
		w.cutShort()
		w.cutShort()
		killed := 0
		for id, s := range w.list() {
			if s.control {
				killSession(t, w.admin, tg, id)
				killed++
			}
		}
		w.cutShort()
		if s := w.stats(workload.Batch); killed == 0 || s.EndedConfirmed+s.EndedForced != 3 || s.EndProblem != "" {
			t.Errorf("%d killed: %+v", killed, s)
		}
	})
}
