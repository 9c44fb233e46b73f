package libraries

import (
	"context"
	"database/sql"
	_ "embed"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/integration/libraries/sqlc"
)

//go:embed sqlc/schema.sql
var sqlcSchema string

//go:embed sqlc/db.go
var sqlcGenerated string

func TestSQLCWorksAsOnAPlainHandle(t *testing.T) {
	on(t, []server{postgres}, func(t *testing.T, s server) {
		runs("github.com/lib/pq") // what it generates uses its arrays
		generatedBy("github.com/sqlc-dev/sqlc", "sqlc", sqlcGenerated)
		exercise(t, s, func(tb testing.TB, db *sql.DB) job {
			return func(ctx context.Context, j *journal) {
				_, err := db.ExecContext(ctx, sqlcSchema)
				j.must(err)
				prepared, err := sqlc.Prepare(ctx, db)
				j.must(err)
				for _, q := range []*sqlc.Queries{sqlc.New(db), prepared} {
					sqlcJob(ctx, q, j)
					sqlcTransactions(ctx, db, q, j)
				}
				j.must(prepared.Close())
				_, err = db.ExecContext(ctx, "DROP TABLE author")
				j.must(err)
			}
		})
	})
}

func sqlcJob(ctx context.Context, q *sqlc.Queries, j *journal) {
	author, err := q.CreateAuthor(ctx, sqlc.CreateAuthorParams{
		ID: 1, Name: "Lem", Tags: []string{"sf", "a \"quoted\" one"},
		Born: sql.NullTime{Time: time.Date(1921, 9, 12, 0, 0, 0, 0, time.UTC), Valid: true},
	})
	j.got("created", author, err)
	_, err = q.CreateAuthor(ctx, sqlc.CreateAuthorParams{ID: 2, Name: "Lem", Tags: []string{}})
	j.got("duplicate", err)
	n, err := q.CreateAuthors(ctx, sqlc.CreateAuthorsParams{Ids: []int64{2, 3}, Names: []string{"Le Guin", "Dick"}})
	j.got("batch", n, err)

	tagged, err := q.AuthorsTagged(ctx, []string{"sf", "none"})
	j.must(err)
	for _, row := range tagged {
		j.got("tagged", row.ID, row.Name, row.Tags)
		j.ran(row.Here)
	}
	authors, err := q.AuthorsByID(ctx, []int64{1, 3, 4711})
	j.got("by id", authors, err)
}

// sqlcTransactions leaves the table empty.
func sqlcTransactions(ctx context.Context, db *sql.DB, q *sqlc.Queries, j *journal) {
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		tx, err := db.BeginTx(ctx, nil)
		j.must(err)
		qtx := q.WithTx(tx)
		n, err := qtx.RenameAuthor(ctx, sqlc.RenameAuthorParams{ID: 3, Name: "Philip"})
		j.got("renamed", n, err)
		for id := int64(1); id <= 3; id++ {
			j.must(qtx.DeleteAuthor(ctx, id))
		}
		here, err := qtx.Here(ctx)
		j.must(err)
		j.ran(here)
		j.must(end(tx))
		authors, err := q.AuthorsByID(ctx, []int64{1, 2, 3})
		j.got("left", authors, err)
	}
	here, err := q.Here(ctx)
	j.must(err)
	j.ran(here)
}
