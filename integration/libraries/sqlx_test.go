package libraries

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jmoiron/sqlx"
)

// C20
func TestSQLXRebindsToTheDriversPlaceholders(t *testing.T) {
	on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
		got := sqlx.NewDb(setup(t, s).db, s.driver).Rebind("a=? AND b=?")
		if want := sqlx.NewDb(plain(t, s), s.driver).Rebind("a=? AND b=?"); got != want {
			t.Errorf("%q, plain %q", got, want)
		}
		if s.driver == "pgx" && got != "a=$1 AND b=$2" {
			t.Errorf("%q", got)
		}
	})
}

func TestSQLXWorksAsOnAPlainHandle(t *testing.T) {
	on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
		runs("github.com/jmoiron/sqlx")
		exercise(t, s, func(tb testing.TB, db *sql.DB) job {
			xdb := sqlx.NewDb(db, s.driver)
			return func(ctx context.Context, j *journal) {
				xdb.MustExecContext(ctx, "CREATE TABLE person (id int PRIMARY KEY, name varchar(40), boss int NULL)")
				sqlxWrites(ctx, xdb, j)
				sqlxReads(ctx, s, xdb, j)
				sqlxPrepared(ctx, s, xdb, j)
				sqlxTransaction(ctx, s, xdb, j)
				xdb.MustExecContext(ctx, "DROP TABLE person")
			}
		})
	})
}

type person struct {
	ID   int
	Name string
	Boss sql.NullInt64
}

func sqlxWrites(ctx context.Context, db *sqlx.DB, j *journal) {
	const insert = "INSERT INTO person (id, name, boss) VALUES (:id, :name, :boss)"
	boss := sql.NullInt64{Int64: 1, Valid: true}
	res, err := db.NamedExecContext(ctx, insert, []person{{1, "Ada", sql.NullInt64{}}, {2, "Bob", boss}, {3, "Cy", boss}})
	j.must(err)
	j.got("batch", affected(j, res))
	_, err = db.NamedExecContext(ctx, insert, map[string]any{"id": 4, "name": "Di", "boss": nil})
	j.must(err)
	_, err = db.ExecContext(ctx, db.Rebind("INSERT INTO person (id) VALUES (?)"), 4)
	j.got("duplicate", err)
}

func affected(j *journal, res sql.Result) int64 {
	n, err := res.RowsAffected()
	j.must(err)
	return n
}

func sqlxReads(ctx context.Context, s server, db *sqlx.DB, j *journal) {
	query, args, err := sqlx.In("SELECT * FROM person WHERE id IN (?) AND name <> ? ORDER BY id", []int{1, 2, 4}, "Di")
	j.must(err)
	var people []person
	j.must(db.SelectContext(ctx, &people, db.Rebind(query), args...))
	j.got("in", people)

	var one person
	j.must(db.GetContext(ctx, &one, db.Rebind("SELECT p.* FROM person p JOIN person b ON b.id = p.boss WHERE p.name = ?"), "Cy"))
	j.got("joined", one)
	j.got("none", errors.Is(db.GetContext(ctx, &one, "SELECT * FROM person WHERE id = 0"), sql.ErrNoRows))

	rows, err := db.NamedQueryContext(ctx, "SELECT id, name, "+s.here+" AS here FROM person WHERE boss = :boss ORDER BY id", person{Boss: sql.NullInt64{Int64: 1, Valid: true}})
	j.must(err)
	defer rows.Close()
	for rows.Next() {
		var row struct {
			ID         int
			Name, Here string
		}
		j.must(rows.StructScan(&row))
		j.got("row", row.ID, row.Name)
		j.ran(row.Here)
	}
	j.must(rows.Err())
}

func sqlxPrepared(ctx context.Context, s server, db *sqlx.DB, j *journal) {
	stmt, err := db.PreparexContext(ctx, db.Rebind("SELECT name, "+s.here+" AS here FROM person WHERE id = ?"))
	j.must(err)
	defer stmt.Close()
	named, err := db.PrepareNamedContext(ctx, "SELECT name, "+s.here+" AS here FROM person WHERE id = :id")
	j.must(err)
	defer named.Close()
	var row struct{ Name, Here string }
	for id := 1; id <= 3; id++ {
		j.must(stmt.GetContext(ctx, &row, id))
		j.got("prepared", row.Name)
		j.ran(row.Here)
		j.must(named.GetContext(ctx, &row, map[string]any{"id": id}))
		j.got("prepared by name", row.Name)
		j.ran(row.Here)
	}
}

func sqlxTransaction(ctx context.Context, s server, db *sqlx.DB, j *journal) {
	stmt, err := db.PreparexContext(ctx, "SELECT "+s.here)
	j.must(err)
	defer stmt.Close()
	for _, end := range []func(*sqlx.Tx) error{(*sqlx.Tx).Rollback, (*sqlx.Tx).Commit} {
		tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		j.must(err)
		res, err := tx.NamedExecContext(ctx, "UPDATE person SET name = :name WHERE id > 2", person{Name: "Eve"})
		j.must(err)
		j.got("updated", affected(j, res))
		var before, after string
		j.must(tx.GetContext(ctx, &before, "SELECT "+s.here))
		j.must(tx.StmtxContext(ctx, stmt).GetContext(ctx, &after))
		j.ran(before)
		j.ran(after)
		j.must(end(tx))
		rows, err := db.QueryxContext(ctx, "SELECT id, name FROM person ORDER BY id")
		j.must(err)
		for rows.Next() {
			row := map[string]any{}
			j.must(rows.MapScan(row))
			j.got("map", row)
		}
		j.must(rows.Close())
	}
}
