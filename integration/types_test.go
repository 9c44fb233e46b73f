package integration

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"reflect"
	"testing"

	pgxlib "github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	libpq "github.com/lib/pq"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// twin is an open handle under a name: plain or partitioned.
type twin struct {
	name string
	db   *sql.DB
}

// twins are the partitioned handle and plain database/sql beside it.
func (r *rig) twins() []twin { return []twin{{"plain", r.plain()}, {"partitioned", r.db}} }

// C03: values that only a driver's own converter takes.
func TestArgumentsThatTheDriverConvertsGoThroughDirectAndPrepared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target
		query string
		arg   any
		want  string
	}{
		{pgx, "SELECT CAST($1::int[] AS text)", []int64{1, 2}, "{1,2}"},
		{pgx, "SELECT CAST($1::jsonb AS text)", map[string]any{"a": 1}, `{"a": 1}`},
		{pq, "SELECT CAST($1::int[] AS text)", libpq.Array([]int64{1, 2}), "{1,2}"},
		{mariadb, "SELECT CAST(? AS UNSIGNED)", uint64(1) << 63, "9223372036854775808"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, tw := range setup(t, c.target).twins() {
				if got := ask(t, oltp, tw.db, c.query, c.arg); got != c.want {
					t.Errorf("%s, direct: %s, want %s", tw.name, got, c.want)
				}
				if got := askPrepared(t, tw.db, c.query, c.arg); got != c.want {
					t.Errorf("%s, prepared: %s, want %s", tw.name, got, c.want)
				}
			}
		})
	}
}

func askPrepared(t *testing.T, db *sql.DB, query string, args ...any) (value string) {
	t.Helper()
	stmt, err := db.PrepareContext(oltp, query)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	if err := stmt.QueryRowContext(oltp, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// C04
func TestRawHandsOutTheDriversConnectionForCopyFrom(t *testing.T) {
	t.Parallel()
	r := setup(t, pgx)
	table := r.table("n int")
	conns, giveBack := r.take(reporting, 1)
	err := partition.Raw(conns[0], func(driverConn any) error {
		conn := driverConn.(*stdlib.Conn).Conn()
		n, err := conn.CopyFrom(t.Context(), pgxlib.Identifier{table}, []string{"n"}, pgxlib.CopyFromRows([][]any{{1}, {2}, {3}}))
		if n != 3 {
			t.Errorf("CopyFrom wrote %d rows", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	giveBack()
	if got := ask(t, reporting, r.db, "SELECT count(*) FROM "+table); got != "3" {
		t.Errorf("%s rows, want 3", got)
	}
}

// C05
func TestColumnTypesAreThoseOfTheDriver(t *testing.T) {
	queries := map[string]string{
		"pgx":     "SELECT 1::int8 AS a, 1.5::numeric(8,2) AS b, 'x'::varchar(10) AS c",
		"pq":      "SELECT 1::int8 AS a, 1.5::numeric(8,2) AS b, 'x'::varchar(10) AS c",
		"mariadb": "SELECT CAST(1 AS UNSIGNED) AS a, CAST(1.5 AS DECIMAL(8,2)) AS b, CAST('x' AS CHAR(10)) AS c, NULL AS d",
		"sqlite":  "SELECT 1 AS a, 1.5 AS b, 'x' AS c, NULL AS d",
	}
	on(t, allTargets, func(t *testing.T, tg target) {
		r := setup(t, tg)
		twins := r.twins()
		want, got := columnTypes(t, twins[0].db, queries[tg.name]), columnTypes(t, twins[1].db, queries[tg.name])
		if !reflect.DeepEqual(got, want) {
			t.Errorf("column types\n%v, plain has\n%v", got, want)
		}
		if tg.name != "pgx" {
			return
		}
		asReported := []string{
			"a INT8 int64 decimal 0,0 false length 0 false",
			"b NUMERIC float64 decimal 8,2 true length 0 false",
			"c VARCHAR string decimal 0,0 false length 10 true",
		}
		for i, want := range asReported {
			if got[i][:len(want)] != want {
				t.Errorf("column %s, want %s", got[i], want)
			}
		}
	})
}

func columnTypes(t *testing.T, db *sql.DB, query string) (types []string) {
	t.Helper()
	rows, err := db.QueryContext(oltp, query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range columns {
		precision, scale, decimal := c.DecimalSize()
		length, variable := c.Length()
		nullable, known := c.Nullable()
		types = append(types, fmt.Sprintf("%s %s %v decimal %d,%d %v length %d %v nullable %v %v",
			c.Name(), c.DatabaseTypeName(), c.ScanType(), precision, scale, decimal, length, variable, nullable, known))
	}
	return types
}

// money is a driver.Valuer whose method has a value receiver: a call through a nil pointer panics.
type money struct{ cents int64 }

func (m money) Value() (sqldriver.Value, error) { return m.cents, nil }

// C35
func TestNilPointerToAValuerIsNull(t *testing.T) {
	on(t, allTargets, func(t *testing.T, tg target) {
		r := setup(t, tg)
		query := "SELECT CASE WHEN CAST(" + tg.arg + " AS CHAR) IS NULL THEN 'null' ELSE 'value' END"
		for _, tw := range r.twins() {
			if got := ask(t, oltp, tw.db, query, (*money)(nil)); got != "null" {
				t.Errorf("%s, direct: %s", tw.name, got)
			}
			if got := askPrepared(t, tw.db, query, (*money)(nil)); got != "null" {
				t.Errorf("%s, prepared: %s", tw.name, got)
			}
		}
	})
}

func TestNullsAndBinaryRoundTripAsPlain(t *testing.T) {
	on(t, allTargets, func(t *testing.T, tg target) {
		r := setup(t, tg)
		query := "SELECT " + tg.arg
		if tg.arg == "$1" {
			query = "SELECT $1::bytea"
		}
		for _, tw := range r.twins() {
			for _, want := range [][]byte{nil, {}, {0, 255, '\'', '\\'}} {
				var got []byte
				if err := tw.db.QueryRowContext(context.Background(), query, want).Scan(&got); err != nil {
					t.Fatal(err)
				}
				if string(got) != string(want) {
					t.Errorf("%s: %v came back as %v", tw.name, want, got)
				}
			}
		}
	})
}
