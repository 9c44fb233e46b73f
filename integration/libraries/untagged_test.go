package libraries

import (
	"database/sql"
	"errors"
	"testing"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/feature"
	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/sqlbulkhead/sqlbulkhead/integration/libraries/ent"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// What GORM asks when it is opened carries no tag, and if that fails it closes the handle that it was given.
func TestGORMOpensWhereATagIsRequiredOnceItsOwnQuestionsAreOff(t *testing.T) {
	on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
		open := func(db *sql.DB, quietly bool) (*gorm.DB, error) {
			dialector := gormpostgres.New(gormpostgres.Config{Conn: db})
			if s.driver == "mysql" {
				dialector = gormmysql.New(gormmysql.Config{Conn: db, SkipInitializeWithVersion: quietly})
			}
			return gorm.Open(dialector, &gorm.Config{Logger: quietGORM, DisableAutomaticPing: quietly})
		}
		db := setup(t, s, partition.WithRequiredTag()).db
		if _, err := open(db, false); !errors.Is(err, partition.ErrUntagged) {
			t.Errorf("%v", err)
		}
		if err := db.PingContext(reporting); err == nil {
			t.Error("the handle is still open")
		}
		gdb, err := open(setup(t, s, partition.WithRequiredTag()).db, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := gdb.WithContext(reporting).Exec("SELECT 1").Error; err != nil {
			t.Error(err)
		}
	})
}

// ent's migration asks for the server's version without a context.
func TestEntMigratesWhereATagIsRequiredOnThePoolsOwnHandle(t *testing.T) {
	on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
		entWorks.Lock()
		defer entWorks.Unlock()
		h := setup(t, s, partition.WithRequiredTag())
		client := ent.NewClient(ent.Driver(entsql.OpenDB(s.ent(), h.db)))
		if err := client.Schema.Create(in(workload.Admin)); !errors.Is(err, partition.ErrUntagged) {
			t.Errorf("%v", err)
		}
		client = ent.NewClient(ent.Driver(entsql.OpenDB(s.ent(), h.pool(workload.Admin).DB())))
		if err := client.Schema.Create(in(workload.Admin)); err != nil {
			t.Error(err)
		}
	})
}

// bun's dialect for MySQL asks for the version without a context, and logs the error.
func TestBunDoesWithoutTheFeaturesOfAServerThatItCouldNotAsk(t *testing.T) {
	on(t, []server{mariadb}, func(t *testing.T, s server) {
		h := setup(t, s)
		if !bun.NewDB(h.db, s.bun()).HasFeature(feature.InsertReturning) {
			t.Error("no INSERT ... RETURNING")
		}
		h.pool(workload.OLTP).Pause()
		if bun.NewDB(h.db, s.bun()).HasFeature(feature.InsertReturning) {
			t.Error("INSERT ... RETURNING of an unknown server")
		}
		h.pool(workload.OLTP).Resume()
	})
}
