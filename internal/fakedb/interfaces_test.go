package fakedb_test

//lint:file-ignore SA1019 the fake plays drivers that have only what is deprecated

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"io"
	"reflect"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
)

// has asks as database/sql does.
func has[I any](v any) bool { _, ok := v.(I); return ok }

var connHas = map[fakedb.Interfaces]func(any) bool{
	fakedb.Pinger:             has[sqldriver.Pinger],
	fakedb.ExecerContext:      has[sqldriver.ExecerContext],
	fakedb.QueryerContext:     has[sqldriver.QueryerContext],
	fakedb.ConnPrepareContext: has[sqldriver.ConnPrepareContext],
	fakedb.ConnBeginTx:        has[sqldriver.ConnBeginTx],
	fakedb.SessionResetter:    has[sqldriver.SessionResetter],
	fakedb.Validator:          has[sqldriver.Validator],
	fakedb.NamedValueChecker:  has[sqldriver.NamedValueChecker],
	fakedb.Execer:             has[sqldriver.Execer],  //nolint:staticcheck // old drivers have it
	fakedb.Queryer:            has[sqldriver.Queryer], //nolint:staticcheck // old drivers have it
}

var stmtHas = map[fakedb.Interfaces]func(any) bool{
	fakedb.StmtExecContext:       has[sqldriver.StmtExecContext],
	fakedb.StmtQueryContext:      has[sqldriver.StmtQueryContext],
	fakedb.StmtNamedValueChecker: has[sqldriver.NamedValueChecker],
	fakedb.ColumnConverter:       has[sqldriver.ColumnConverter],
}

var rowsHas = map[fakedb.Interfaces]func(any) bool{
	fakedb.RowsNextResultSet:              has[sqldriver.RowsNextResultSet],
	fakedb.RowsColumnTypeScanType:         has[sqldriver.RowsColumnTypeScanType],
	fakedb.RowsColumnTypeDatabaseTypeName: has[sqldriver.RowsColumnTypeDatabaseTypeName],
	fakedb.RowsColumnTypeLength:           has[sqldriver.RowsColumnTypeLength],
	fakedb.RowsColumnTypeNullable:         has[sqldriver.RowsColumnTypeNullable],
	fakedb.RowsColumnTypePrecisionScale:   has[sqldriver.RowsColumnTypePrecisionScale],
}

func exactly(t *testing.T, v any, shape fakedb.Interfaces, table map[fakedb.Interfaces]func(any) bool) {
	t.Helper()
	for i, is := range table {
		equal(t, i.String(), is(v), shape.Has(i))
	}
}

func dial(t *testing.T, s *fakedb.Server) sqldriver.Conn {
	t.Helper()
	c, err := s.Connector().Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryConnShapeHasExactlyItsInterfaces(t *testing.T) {
	t.Parallel()
	for _, shape := range fakedb.ConnShapes() {
		t.Run(shape.String(), func(t *testing.T) {
			t.Parallel()
			c := dial(t, fakedb.New(fakedb.Without(fakedb.AllConn), fakedb.With(shape)))
			exactly(t, c, shape, connHas)
			equal(t, "ID", fakedb.ConnID(c), 1)
		})
	}
}

func TestEveryUsualConnInterfaceCanBeSwitchedOffAlone(t *testing.T) {
	t.Parallel()
	for i := range connHas {
		if i != fakedb.Execer && i != fakedb.Queryer {
			exactly(t, dial(t, fakedb.New(fakedb.Without(i))), fakedb.AllConn&^(i|fakedb.Execer|fakedb.Queryer), connHas)
		}
	}
}

func TestEveryStmtShapeHasExactlyItsInterfaces(t *testing.T) {
	t.Parallel()
	for _, shape := range fakedb.StmtShapes() {
		t.Run(shape.String(), func(t *testing.T) {
			t.Parallel()
			st, err := dial(t, fakedb.New(fakedb.Without(fakedb.AllStmt), fakedb.With(shape))).Prepare("ok")
			if err != nil {
				t.Fatal(err)
			}
			exactly(t, st, shape, stmtHas)
		})
	}
}

func TestEveryRowsShapeHasExactlyItsInterfaces(t *testing.T) {
	t.Parallel()
	for _, shape := range fakedb.RowsShapes() {
		t.Run(shape.String(), func(t *testing.T) {
			t.Parallel()
			c := dial(t, fakedb.New(fakedb.With(shape)))
			rows, err := c.(sqldriver.QueryerContext).QueryContext(context.Background(), "types", nil)
			if err != nil {
				t.Fatal(err)
			}
			exactly(t, rows, shape, rowsHas)
		})
	}
}

func TestDriverAndConnectorInterfacesCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	full, bare := fakedb.New(), fakedb.New(fakedb.Without(fakedb.DriverContext, fakedb.ConnectorCloser))
	equal(t, "DriverContext", has[sqldriver.DriverContext](full.Driver()), true)
	equal(t, "DriverContext", has[sqldriver.DriverContext](bare.Driver()), false)
	equal(t, "io.Closer", has[io.Closer](full.Connector()), true)
	equal(t, "io.Closer", has[io.Closer](bare.Connector()), false)
	equal(t, "same driver each time", bare.Driver(), bare.Connector().Driver())
}

func TestNewPanicsForAShapeThatThereIsNot(t *testing.T) {
	t.Parallel()
	defer func() {
		want := "fakedb: there is no shape with exactly these interfaces: Pinger"
		equal(t, "panic", recover(), any(want))
	}()
	fakedb.New(fakedb.Without(fakedb.AllConn), fakedb.With(fakedb.Pinger))
}

// TestEveryShapeServesPlainDatabaseSQL: whatever is missing, database/sql finds another way.
func TestEveryShapeServesPlainDatabaseSQL(t *testing.T) {
	t.Parallel()
	for _, c := range fakedb.ConnShapes() {
		for _, st := range fakedb.StmtShapes() {
			t.Run(c.String()+"/"+st.String(), func(t *testing.T) {
				opt := fakedb.Without(fakedb.AllConn, fakedb.AllStmt)
				inBubble(t, servesAll, opt, fakedb.With(c, st))
			})
		}
	}
}

func servesAll(b *bench) {
	b.nilError(b.db.PingContext(b.ctx))
	_, err := b.exec(b.ctx, "ok ?", "x")
	b.nilError(err)
	list, err := b.query("rows 3")
	b.nilError(err)
	equalList(b.T, "rows", list, 1, 2, 3)
	st, err := b.db.PrepareContext(b.ctx, "ok ?")
	b.nilError(err)
	_, err = st.ExecContext(b.ctx, 7)
	b.nilError(err)
	b.nilError(st.QueryRowContext(b.ctx, 7).Scan(new(int)))
	b.nilError(st.Close())
	tx, err := b.db.BeginTx(b.ctx, nil)
	b.nilError(err)
	b.nilError(tx.Commit())
	stats := b.s.Stats()
	equal(b.T, "statements closed", stats.StmtsClosed, stats.Prepared)
	b.blameless()
}

func TestColumnTypesFollowTheValues(t *testing.T) {
	inBubble(t, func(b *bench) {
		rows, err := b.db.QueryContext(b.ctx, "types")
		b.nilError(err)
		defer rows.Close()
		types, err := rows.ColumnTypes()
		b.nilError(err)
		var names []string
		for _, c := range types {
			names = append(names, c.DatabaseTypeName())
		}
		equalList(b.T, "names", names, "INT8", "NUMERIC", "VARCHAR", "BYTEA", "BOOL", "TIMESTAMPTZ", "UNKNOWN")
		equal(b.T, "scan type", types[0].ScanType(), reflect.TypeFor[int64]())
		precision, scale, ok := types[1].DecimalSize()
		equal(b.T, "decimal", [3]any{precision, scale, ok}, [3]any{int64(8), int64(2), true})
		length, ok := types[2].Length()
		equal(b.T, "length", [2]any{length, ok}, [2]any{int64(10), true})
		nullable, ok := types[6].Nullable()
		equal(b.T, "nullable", [2]bool{nullable, ok}, [2]bool{true, true})
	}, fakedb.With(fakedb.AllRows))
}

func TestRegisteredDriverDialsItsDSN(t *testing.T) {
	inBubble(t, func(b *bench) {
		db, err := sql.Open(b.s.Register("fake"), "host=here")
		b.nilError(err)
		b.nilError(db.PingContext(b.ctx))
		b.nilError(db.Close())
		equalList(b.T, "calls", texts(b.s.Calls()), `open "host=here"`, `dial "host=here"`, `conn 1 ping`,
			`conn 1 valid`, `conn 1 close`, `close connector "host=here"`)
		equal(b.T, "connectors closed", b.s.Stats().ConnectorsClosed, 1)
	})
}

func TestRegisteredDriverWithoutConnectorsIsDialledToo(t *testing.T) {
	inBubble(t, func(b *bench) {
		db, err := sql.Open(b.s.Register("fake"), "host=here")
		b.nilError(err)
		b.nilError(db.PingContext(b.ctx))
		b.nilError(db.Close())
		equal(b.T, "DSN", b.s.Conns()[0].DSN, "host=here")
		equal(b.T, "connectors closed", b.s.Stats().ConnectorsClosed, 0)
	}, fakedb.Without(fakedb.DriverContext))
}
