package libraries

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/schema"
)

type bunAuthor struct {
	ID    int64      `bun:",pk,autoincrement"`
	Name  string     `bun:"type:varchar(40),unique"`
	Books []*bunBook `bun:"rel:has-many,join:id=author_id"`
}

type bunBook struct {
	ID       int64 `bun:",pk,autoincrement"`
	Title    string
	Price    float64
	AuthorID int64
	Author   *bunAuthor `bun:"rel:belongs-to,join:author_id=id"`
}

func (s server) bun() schema.Dialect {
	if s.driver == "mysql" {
		return mysqldialect.New()
	}
	return pgdialect.New()
}

func TestBunWorksAsOnAPlainHandle(t *testing.T) {
	on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
		runs("github.com/uptrace/bun", "github.com/uptrace/bun/dialect/"+s.bun().Name().String()+"dialect")
		exercise(t, s, func(tb testing.TB, db *sql.DB) job {
			bdb := bun.NewDB(db, s.bun())
			return func(ctx context.Context, j *journal) {
				for _, model := range []any{(*bunAuthor)(nil), (*bunBook)(nil)} {
					_, err := bdb.NewCreateTable().Model(model).Exec(ctx)
					j.must(err)
				}
				bunWrites(ctx, bdb, j)
				bunReads(ctx, s, bdb, j)
				bunTransactions(ctx, s, bdb, j)
				for _, model := range []any{(*bunAuthor)(nil), (*bunBook)(nil)} {
					_, err := bdb.NewDropTable().Model(model).Exec(ctx)
					j.must(err)
				}
			}
		})
	})
}

func bunWrites(ctx context.Context, db *bun.DB, j *journal) {
	authors := []*bunAuthor{{Name: "Lem"}, {Name: "Le Guin"}, {Name: "Brunner"}}
	_, err := db.NewInsert().Model(&authors).Exec(ctx)
	j.must(err)
	j.got("ids", authors[0].ID, authors[2].ID)
	books := []*bunBook{{Title: "Solaris", Price: 9.5, AuthorID: authors[0].ID}, {Title: "Fiasco", Price: 7.25, AuthorID: authors[0].ID}, {Title: "The Dispossessed", Price: 11, AuthorID: authors[1].ID}}
	_, err = db.NewInsert().Model(&books).Exec(ctx)
	j.must(err)
	_, err = db.NewInsert().Model(&bunAuthor{Name: "Lem"}).Exec(ctx)
	j.got("duplicate", err)
	res, err := db.NewUpdate().Model((*bunBook)(nil)).Set("price = price * ?", 2).Where("price < ?", 10).Exec(ctx)
	j.must(err)
	j.got("updated", affected(j, res))
	res, err = db.NewDelete().Model((*bunAuthor)(nil)).Where("name IN (?)", bun.List([]string{"Brunner", "nobody"})).Exec(ctx)
	j.must(err)
	j.got("deleted", affected(j, res))
}

func bunReads(ctx context.Context, s server, db *bun.DB, j *journal) {
	var authors []bunAuthor
	j.must(db.NewSelect().Model(&authors).Relation("Books", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Order("title")
	}).Order("bun_author.id").Scan(ctx))
	for _, a := range authors {
		for _, b := range a.Books {
			j.got("has many", a.ID, a.Name, *b)
		}
	}
	book := new(bunBook)
	j.must(db.NewSelect().Model(book).Relation("Author").Where("title LIKE ?", "F%").Scan(ctx))
	j.got("belongs to", book.Title, *book.Author)
	j.got("none", errors.Is(db.NewSelect().Model(book).Where("bun_book.id = 0").Scan(ctx), sql.ErrNoRows))
	n, err := db.NewSelect().Model((*bunBook)(nil)).Count(ctx)
	j.must(err)
	j.got("count", n)
	var rows []struct{ Title, Here string }
	j.must(db.NewSelect().Model((*bunBook)(nil)).Column("title").ColumnExpr(s.here+" AS here").Order("id").Scan(ctx, &rows))
	for _, row := range rows {
		j.got("row", row.Title)
		j.ran(row.Here)
	}
}

func bunTransactions(ctx context.Context, s server, db *bun.DB, j *journal) {
	stmt, err := db.PrepareContext(ctx, "SELECT "+s.here)
	j.must(err)
	defer stmt.Close()
	undone := errors.New("undone")
	for _, outcome := range []error{undone, nil} {
		j.got("transaction", db.RunInTx(ctx, &sql.TxOptions{}, func(ctx context.Context, tx bun.Tx) error {
			_, err := tx.NewInsert().Model(&bunAuthor{Name: "Dick"}).Exec(ctx)
			j.must(err)
			j.got("nested", tx.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { // a savepoint
				_, err := tx.NewDelete().Model((*bunBook)(nil)).Where("1 = 1").Exec(ctx)
				j.must(err)
				j.ran(bunHere(ctx, s, tx, j))
				return undone
			}))
			var here string
			j.must(tx.StmtContext(ctx, stmt.Stmt).QueryRowContext(ctx).Scan(&here))
			j.ran(here)
			return outcome
		}))
		var names []string
		j.must(db.NewSelect().Model((*bunAuthor)(nil)).Column("name").Order("name").Scan(ctx, &names))
		j.got("left", names)
	}
	conn, err := db.Conn(ctx)
	j.must(err)
	defer conn.Close()
	j.ran(bunHere(ctx, s, conn, j))
	var here string
	j.must(stmt.QueryRowContext(ctx).Scan(&here))
	j.ran(here)
}

func bunHere(ctx context.Context, s server, db bun.IDB, j *journal) (here string) {
	j.must(db.NewSelect().ColumnExpr(s.here).Scan(ctx, &here))
	return here
}
