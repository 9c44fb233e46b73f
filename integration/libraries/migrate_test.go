package libraries

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratemysql "github.com/golang-migrate/migrate/v4/database/mysql"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	migratepostgres "github.com/golang-migrate/migrate/v4/database/postgres"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// migrateWay is one of golang-migrate's ways to take what is already open, and to be in the admin pool all the same:
// it hands no context on.
type migrateWay struct {
	name   string
	server server
	open   func(h *handle) (database.Driver, error)
}

func (h *handle) adminConn() *sql.Conn {
	h.Helper()
	c, err := h.db.Conn(in(workload.Admin))
	if err != nil {
		h.Fatal(err)
	}
	return c
}

var migrateWays = []migrateWay{
	{"pgx WithInstance", postgres, func(h *handle) (database.Driver, error) {
		return migratepgx.WithInstance(h.pool(workload.Admin).DB(), &migratepgx.Config{})
	}},
	{"postgres WithConnection", postgres, func(h *handle) (database.Driver, error) {
		return migratepostgres.WithConnection(context.Background(), h.adminConn(), &migratepostgres.Config{})
	}},
	{"mysql WithConnection", mariadb, func(h *handle) (database.Driver, error) {
		return migratemysql.WithConnection(context.Background(), h.adminConn(), &migratemysql.Config{})
	}},
}

func (w migrateWay) new(h *handle) *migrate.Migrate {
	h.Helper()
	driver, err := w.open(h)
	if err != nil {
		h.Fatal(err)
	}
	s := w.server
	source, err := iofs.New(fstest.MapFS{
		"1_table.up.sql":   {Data: []byte(s.proof() + "; " + s.prove(1, h.migrateLock(s)))},
		"1_table.down.sql": {Data: []byte("DROP TABLE proof")},
		"2_again.up.sql":   {Data: []byte(s.prove(2, h.migrateLock(s)))},
		"2_again.down.sql": {Data: []byte("DELETE FROM proof WHERE step = 2")},
	}, ".")
	if err != nil {
		h.Fatal(err)
	}
	m, err := migrate.NewWithInstance("iofs", source, s.name, driver)
	if err != nil {
		h.Fatal(err)
	}
	return m
}

// migrateLock is the name of golang-migrate's lock on MariaDB.
func (h *handle) migrateLock(s server) string {
	h.Helper()
	if s.driver != "mysql" {
		return ""
	}
	var schema string
	if err := h.db.QueryRow("SELECT DATABASE()").Scan(&schema); err != nil {
		h.Fatal(err)
	}
	id, err := database.GenerateAdvisoryLockId(schema + ":" + migratemysql.DefaultMigrationsTable)
	if err != nil {
		h.Fatal(err)
	}
	return id
}

func TestGolangMigrateKeepsItsLockOnOneAdminSession(t *testing.T) {
	t.Parallel()
	for _, w := range migrateWays {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			runs("github.com/golang-migrate/migrate/v4")
			h := setup(t, w.server)
			home := w.server.homesOf(t, h)
			first, second := w.new(h), w.new(h)
			var both sync.WaitGroup
			var errs [2]error
			for i, m := range []*migrate.Migrate{first, second} {
				both.Go(func() { errs[i] = m.Up() })
			}
			both.Wait()
			if a, b := errs[0], errs[1]; a != nil && b != nil || !errors.Is(errors.Join(a, b), migrate.ErrNoChange) {
				t.Errorf("one got %v and the other %v", a, b)
			}
			all := proofs(t, in(workload.OLTP), h.db)
			checkProofs(t, all, 2, home)
			if w.server.driver == "pgx" {
				noLock(t, h.db, all[0].session)
			}
			if err := first.Down(); err != nil {
				t.Error(err)
			}
			w.close(h, first, second)
		})
	}
}

// close gives the connections back. What WithInstance was given is closed with them: a pool's handle does not close its
// pool, says so, and is replaced.
func (w migrateWay) close(h *handle, first, second *migrate.Migrate) {
	h.Helper()
	_, err := first.Close()
	if closes := w.name == "pgx WithInstance"; (err != nil) != closes {
		h.Errorf("Close: %v", err)
	}
	second.Close()
	for _, db := range []*sql.DB{h.db, h.pool(workload.Admin).DB()} {
		if err := db.PingContext(in(workload.Admin)); err != nil {
			h.Errorf("after Close: %v", err)
		}
	}
}
