package libraries

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

type gormAuthor struct {
	ID    uint
	Name  string `gorm:"size:40;uniqueIndex"`
	Books []gormBook
}

type gormBook struct {
	ID           uint
	Title        string
	Price        float64
	GormAuthorID uint
	GormAuthor   *gormAuthor
}

var quietGORM = logger.Discard

func openGORM(tb testing.TB, s server, db *sql.DB, c gorm.Config) *gorm.DB {
	tb.Helper()
	dialector := gormpostgres.New(gormpostgres.Config{Conn: db})
	if s.driver == "mysql" {
		dialector = gormmysql.New(gormmysql.Config{Conn: db})
	}
	c.Logger = quietGORM
	gdb, err := gorm.Open(dialector, &c)
	if err != nil {
		tb.Fatal(err)
	}
	return gdb
}

func TestGORMWorksAsOnAPlainHandle(t *testing.T) {
	for _, mode := range []struct {
		name   string
		config gorm.Config
	}{
		{"plain", gorm.Config{TranslateError: true}},
		{"PrepareStmt", gorm.Config{TranslateError: true, PrepareStmt: true}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
				runs("gorm.io/gorm", "gorm.io/driver/"+s.gorm())
				exercise(t, s, func(tb testing.TB, db *sql.DB) job {
					gdb := openGORM(tb, s, db, mode.config)
					return func(ctx context.Context, j *journal) { gormJob(s, gdb.WithContext(ctx), j) }
				})
			})
		})
	}
}

func (s server) gorm() string {
	return map[string]string{"pgx": "postgres", "mysql": "mysql"}[s.driver]
}

func gormJob(s server, db *gorm.DB, j *journal) {
	j.must(db.AutoMigrate(&gormAuthor{}, &gormBook{}))
	j.must(db.AutoMigrate(&gormAuthor{}, &gormBook{})) // finds what is there
	gormWrites(s, db, j)
	gormReads(s, db, j)
	gormTransactions(s, db, j)
	j.must(db.Migrator().DropTable(&gormBook{}, &gormAuthor{}))
}

func gormWrites(s server, db *gorm.DB, j *journal) {
	authors := []gormAuthor{
		{Name: "Lem", Books: []gormBook{{Title: "Solaris", Price: 9.5}, {Title: "Fiasco", Price: 7.25}}},
		{Name: "Le Guin", Books: []gormBook{{Title: "The Dispossessed", Price: 11}}},
		{Name: "Brunner"},
	}
	j.must(db.CreateInBatches(&authors, 2).Error)
	j.got("ids", authors[0].ID, authors[2].ID, authors[0].Books[1].ID)

	err := db.Create(&gormAuthor{Name: "Lem"}).Error
	j.got("duplicate", errors.Is(err, gorm.ErrDuplicatedKey), err)
	err = db.Create(&gormBook{Title: "nobody's", GormAuthorID: 4711}).Error
	j.got("foreign key", errors.Is(err, gorm.ErrForeignKeyViolated))

	res := db.Model(&gormBook{}).Where("price < ?", 10).Update("price", gorm.Expr("price * ?", 2))
	j.got("updated", res.RowsAffected, res.Error)
	res = db.Where("name IN ?", []string{"Brunner", "nobody"}).Delete(&gormAuthor{})
	j.got("deleted", res.RowsAffected, res.Error)
}

func gormReads(s server, db *gorm.DB, j *journal) {
	var authors []gormAuthor
	j.must(db.Preload("Books", func(tx *gorm.DB) *gorm.DB { return tx.Order("title") }).Order("id").Find(&authors).Error)
	j.got("preloaded", authors)

	var book gormBook
	j.must(db.Joins("GormAuthor").Order("price DESC").First(&book, "title LIKE ?", "%i%").Error)
	j.got("joined", book.Title, book.GormAuthor.Name)
	j.got("not found", db.First(&gormAuthor{}, 4711).Error)

	var batch []gormBook
	j.must(db.FindInBatches(&batch, 2, func(_ *gorm.DB, n int) error {
		j.got("batch", n, len(batch))
		return nil
	}).Error)

	rows, err := db.Model(&gormBook{}).Select("title, " + s.here).Order("id").Rows()
	j.must(err)
	defer rows.Close()
	for rows.Next() {
		var title, here string
		j.must(rows.Scan(&title, &here))
		j.got("row", title)
		j.ran(here)
	}
	j.must(rows.Err())
}

func gormTransactions(s server, db *gorm.DB, j *journal) {
	j.ran(gormHere(s, db, j))
	undone := errors.New("undone")
	j.got("transaction", db.Transaction(func(tx *gorm.DB) error {
		j.ran(gormHere(s, tx, j))
		j.must(tx.Create(&gormAuthor{Name: "Dick"}).Error)
		j.got("nested", tx.Transaction(func(tx *gorm.DB) error { // a savepoint
			j.must(tx.Create(&gormAuthor{Name: "Nobody"}).Error)
			return undone
		}))
		j.ran(gormHere(s, tx, j))
		return nil
	}))
	j.got("rolled back", db.Transaction(func(tx *gorm.DB) error {
		j.must(tx.Where("1 = 1").Delete(&gormBook{}).Error)
		return undone
	}))
	var names []string
	var books int64
	j.must(db.Model(&gormAuthor{}).Order("name").Pluck("name", &names).Error)
	j.must(db.Model(&gormBook{}).Count(&books).Error)
	j.got("left", names, books)
	j.must(db.Connection(func(tx *gorm.DB) error { // a *sql.Conn
		j.ran(gormHere(s, tx, j))
		return nil
	}))
}

func gormHere(s server, db *gorm.DB, j *journal) (here string) {
	j.must(db.Raw("SELECT "+s.here+" WHERE 1 = ?", 1).Scan(&here).Error)
	return here
}
