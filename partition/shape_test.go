package partition_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
)

func TestEveryShapeOfDriverWorks(t *testing.T) {
	t.Parallel()
	for _, shape := range fakedb.ConnShapes() {
		for _, stmtShape := range fakedb.StmtShapes() {
			t.Run(shape.String()+"/"+stmtShape.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := fakedb.New(fakedb.Without(fakedb.AllConn, fakedb.AllStmt), fakedb.With(shape, stmtShape))
					r := setup(t, s)
					plain := sql.OpenDB(fakedb.New(fakedb.Without(fakedb.AllConn, fakedb.AllStmt), fakedb.With(shape, stmtShape)).Connector())
					defer plain.Close()
					for range 2 {
						for _, entry := range entryPoints {
							want, got := entry.call(oltp, plain), entry.call(oltp, r.db)
							if fmt.Sprint(want) != fmt.Sprint(got) {
								t.Errorf("%s: plain %v, partitioned %v", entry.name, want, got)
							}
						}
						for _, st := range statements {
							want, got := st.run(oltp, plain, "args ?"), st.run(oltp, r.db, "args ?")
							if fmt.Sprint(want) != fmt.Sprint(got) {
								t.Errorf("%s: plain %v, partitioned %v", st.name, want, got)
							}
						}
						for _, opts := range []*sql.TxOptions{nil, {ReadOnly: true}, {Isolation: sql.LevelSerializable}} {
							want, got := begin(plain, opts), begin(r.db, opts)
							if want != got {
								t.Errorf("BeginTx(%+v): plain %v, partitioned %v", opts, want, got)
							}
						}
					}
				})
			})
		}
	}
}

func begin(db *sql.DB, opts *sql.TxOptions) string {
	tx, err := db.BeginTx(oltp, opts)
	if err != nil {
		return err.Error()
	}
	var state string
	err = tx.QueryRow("tx").Scan(&state)
	return fmt.Sprint(state, err, tx.Commit())
}

func TestConnectionOfACancelledTransactionIsKeptAsInPlain(t *testing.T) {
	t.Parallel()
	for _, without := range []fakedb.Interfaces{0, fakedb.SessionResetter, fakedb.Validator} {
		synctest.Test(t, func(t *testing.T) {
			dials := func(open func(*fakedb.Server) *sql.DB) int {
				s := fakedb.New(fakedb.Without(without))
				db := open(s)
				defer db.Close()
				for range 3 {
					ctx, cancel := context.WithCancel(oltp)
					if _, err := db.BeginTx(ctx, nil); err != nil {
						t.Fatal(err)
					}
					cancel()
					synctest.Wait()
				}
				db.ExecContext(oltp, "ok")
				return s.Stats().Dials
			}
			want := dials(func(s *fakedb.Server) *sql.DB { return sql.OpenDB(s.Connector()) })
			got := dials(func(s *fakedb.Server) *sql.DB { return setup(t, s).db })
			if want != got {
				t.Errorf("without %v: plain dialled %d times, partitioned %d", without, want, got)
			}
		})
	}
}
