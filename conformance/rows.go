package conformance

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

func typeWords(w Words) bool { return len(w.Types) > 0 }

var rowScenarios = []Scenario{
	{Name: "column types", Needs: typeWords, Run: func(s *Side) {
		s.onEach(func(r runner) {
			s.Note("direct", s.columns(r.QueryContext(oltp, s.types())))
			s.withStmt(r, s.types(), func(stmt *sql.Stmt) { s.Note("prepared", s.columns(stmt.QueryContext(oltp))) })
		})
	}},
	{Name: "column types of a table", Needs: tableWords, Run: func(s *Side) {
		s.withTable(func() {
			s.Note("rows", s.columns(s.DB.QueryContext(oltp, "SELECT * FROM "+s.Table)))
			s.setup("INSERT INTO " + s.Table + " (n, s) VALUES (1, 'x'), (2, NULL)")
			s.Note("rows", s.columns(s.DB.QueryContext(oltp, "SELECT * FROM "+s.Table)))
		})
	}},
	{Name: "scanning", Random: true, Needs: typeWords, Run: func(s *Side) {
		s.group("direct", func() { s.scans(s.DB.QueryContext(oltp, s.types())) })
		s.group("prepared", func() {
			s.withStmt(s.DB, s.types(), func(stmt *sql.Stmt) { s.scans(stmt.QueryContext(oltp)) })
		})
		s.group("conn", func() { s.onConn(oltp, func(c *sql.Conn) { s.scans(c.QueryContext(oltp, s.types())) }) })
	}},
	{Name: "scanning rows into RawBytes", Needs: func(w Words) bool { return w.Many != "" }, Run: func(s *Side) {
		rows, err := s.DB.QueryContext(oltp, s.Many)
		if err != nil {
			s.Note("query", err)
			return
		}
		var last string
		for n := 0; rows.Next() && n < 100; n++ {
			var b sql.RawBytes
			if err := rows.Scan(&b); err != nil {
				s.Note("scan", err)
				break
			}
			last = string(b)
		}
		s.Note("last", last)
		s.Note("scan again", rows.Scan(new(sql.RawBytes)))
		s.Note("close", rows.Close(), rows.Err())
	}},
	{Name: "rows by themselves", Needs: sqlWords, Run: func(s *Side) {
		rows, err := s.DB.QueryContext(oltp, "SELECT 1 AS a, 'x' AS b")
		if err != nil {
			s.Note("query", err)
			return
		}
		s.Note("scan before next", rows.Scan(new(any), new(any)))
		s.Note("next", rows.Next())
		s.Note("one destination too few", rows.Scan(new(any)))
		s.Note("one too many", rows.Scan(new(any), new(any), new(any)))
		s.Note("no pointer", rows.Scan(1, new(any)))
		s.Note("nil", rows.Scan(nil, new(any)))
		s.Note("next", rows.Next(), rows.Next(), rows.Err())
		s.Note("scan after the last", rows.Scan(new(any), new(any)))
		s.Note("next result set", rows.NextResultSet(), rows.NextResultSet())
		s.Note("close", rows.Close(), rows.Close())
		columns, err := rows.Columns()
		s.Note("columns after close", columns, err)
		_, err = rows.ColumnTypes()
		s.Note("column types after close", err)
		s.Note("scan after close", rows.Scan(new(any), new(any)))
		s.Note("no row", one(s.DB.QueryRowContext(oltp, "SELECT 1 WHERE 1 = 0")))
		s.Note("RawBytes of a row", s.DB.QueryRowContext(oltp, "SELECT 'x'").Scan(new(sql.RawBytes)))
	}},
	{Name: "rows that are left", Conns: 1, Needs: func(w Words) bool { return w.Many != "" }, Run: func(s *Side) {
		for _, n := range []int{0, 1, 50} {
			s.Note(fmt.Sprint("after ", n), s.abandon(s.DB, n))
			s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
		}
		s.onConn(oltp, func(c *sql.Conn) {
			s.Note("of a connection", s.abandon(c, 3))
			s.Note("and then", one(c.QueryRowContext(oltp, "SELECT 1")))
		})
		s.inTx(oltp, nil, func(tx *sql.Tx) {
			s.Note("of a transaction", s.abandon(tx, 3))
			s.Note("and then", one(tx.QueryRowContext(oltp, "SELECT 1")))
		})
		s.Note("query row of many", one(s.DB.QueryRowContext(oltp, s.Many)))
	}},
	{Name: "rows of a transaction, one inside the other", Needs: sqlWords, Run: func(s *Side) {
		s.underBoth(func(ctx context.Context) {
			s.inTx(ctx, nil, func(tx *sql.Tx) {
				rows, err := tx.QueryContext(ctx, "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3")
				if err != nil {
					s.Note("outer", err)
					return
				}
				s.Note("next", rows.Next())
				s.Note("inner", all(tx.QueryContext(ctx, "SELECT 7")))
				s.Note("exec", failed(tx.ExecContext(ctx, "SELECT 8")))
				n := 0
				for rows.Next() {
					n++
				}
				s.Note("the rest", n, rows.Err(), rows.Close())
			})
		})
		s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
	}},
	{Name: "rows left open by their transaction", Needs: sqlWords, Run: func(s *Side) {
		s.inTx(oltp, nil, func(tx *sql.Tx) {
			rows, err := tx.QueryContext(oltp, "SELECT 1 UNION ALL SELECT 2")
			if err != nil {
				s.Note("query", err)
				return
			}
			s.Note("next", rows.Next())
			s.Note("commit", tx.Commit())
			s.Note("next", rows.Next(), rows.Err(), rows.Close())
		})
		s.Note("and then", one(s.DB.QueryRowContext(oltp, "SELECT 1")))
	}},
}

func (s *Side) types() string { return "SELECT " + strings.Join(s.Types, ", ") }

// abandon closes rows after n of them.
func (s *Side) abandon(r runner, n int) any {
	rows, err := r.QueryContext(oltp, s.Many)
	if err != nil {
		return err
	}
	for range n {
		rows.Next()
	}
	return []any{rows.Close(), rows.Err()}
}

// columns records all that is known of the columns.
func (s *Side) columns(rows *sql.Rows, err error) any {
	if err != nil {
		return err
	}
	types, err := rows.ColumnTypes()
	for _, c := range types {
		precision, scale, decimal := c.DecimalSize()
		length, variable := c.Length()
		nullable, known := c.Nullable()
		s.Note("column "+c.Name(), "type", c.DatabaseTypeName(), c.ScanType(), "decimal", precision, scale, decimal,
			"length", length, variable, "nullable", nullable, known)
	}
	return []any{len(types), err, rows.Close()}
}

// seen is a Scanner that shows what it is given.
type seen struct{ src any }

func (s *seen) Scan(src any) error {
	if b, ok := src.([]byte); ok {
		src = append([]byte{}, b...)
	}
	s.src = src
	return nil
}

// failing is a Scanner that fails.
type failing struct{}

func (*failing) Scan(any) error { return errMine }

// destinations are what programs scan into.
var destinations = []func() any{
	func() any { return new(any) }, func() any { return new(string) }, func() any { return new([]byte) },
	func() any { return new(int64) }, func() any { return new(int) }, func() any { return new(int8) },
	func() any { return new(uint8) }, func() any { return new(uint64) }, func() any { return new(float64) },
	func() any { return new(float32) }, func() any { return new(bool) }, func() any { return new(time.Time) },
	func() any { return new(time.Duration) }, func() any { return new(*int64) }, func() any { return new(*string) },
	func() any { return new(**int64) }, func() any { return new(*time.Time) }, func() any { return new(myInt) },
	func() any { return new(myString) }, func() any { return new(myBytes) }, func() any { return new(json.RawMessage) },
	func() any { return new(sql.NullString) }, func() any { return new(sql.NullInt64) }, func() any { return new(sql.NullInt16) },
	func() any { return new(sql.NullFloat64) }, func() any { return new(sql.NullBool) }, func() any { return new(sql.NullTime) },
	func() any { return new(sql.Null[string]) }, func() any { return new(sql.Null[int32]) }, func() any { return new(sql.Null[[]byte]) },
	func() any { return new([]int64) }, func() any { return new([]string) }, func() any { return new([]*int64) },
	func() any { return new([16]byte) }, func() any { return new(map[string]any) }, func() any { return new(struct{ A int }) },
	func() any { return new(chan int) }, func() any { return new(failing) }, func() any { return new(seen) },
}

// scans scans each column of one row into everything.
func (s *Side) scans(rows *sql.Rows, err error) {
	if err != nil {
		s.Note("query", err)
		return
	}
	s.Note("next", rows.Next())
	for i, column := range s.Types {
		for _, newDest := range destinations {
			dest := newDest()
			all := make([]any, len(s.Types))
			for j := range all {
				all[j] = new(any)
			}
			all[i] = dest
			s.Try(fmt.Sprintf("%s into %T", column, dest), func() any {
				if err := rows.Scan(all...); err != nil {
					return err
				}
				return reflect.ValueOf(dest).Elem().Interface()
			})
		}
	}
	s.Note("close", rows.Close(), rows.Err())
}
