package conformance_test

import (
	"net/url"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"

	"strconv"

	"github.com/sqlbulkhead/sqlbulkhead/conformance"
	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

var postgres = conformance.Words{
	Arg:   func(n int) string { return "$" + strconv.Itoa(n) },
	Do:    "SELECT ",
	Casts: []string{"text", "bigint", "bytea", "jsonb", "bigint[]", "text[]", "timestamptz", "float8", "bool", "uuid", "numeric", ""},
	Types: []string{
		"1::int2 AS int2", "2::int4 AS int4", "3::int8 AS int8", "1.5::float4 AS float4", "2.5::float8 AS float8", "1.25::numeric(8,2) AS num",
		"1e40::numeric AS big", "'NaN'::numeric AS nan", "true AS bool", "'x'::text AS text", "'12'::varchar(10) AS varchar", "'a'::char(3) AS bpchar", "'n'::name AS name",
		`'\x00ff'::bytea AS bytea`, "'2024-02-29'::date AS date", "'2024-02-29 12:30:00'::timestamp AS timestamp",
		"'2024-02-29 12:30:00+02'::timestamptz AS timestamptz", "'12:30'::time AS time", "'1 day 02:00'::interval AS interval", "'infinity'::timestamptz AS infinity",
		`'{"a": 1}'::json AS json`, `'{"a": 1}'::jsonb AS jsonb`, "'00000000-0000-0000-0000-000000000009'::uuid AS uuid",
		"'{1,2}'::bigint[] AS int8s", "'{a,NULL}'::text[] AS texts", "'127.0.0.1'::inet AS inet", "int4range(1, 5) AS range", "point(1, 2) AS point",
		"NULL AS unknown", "NULL::bigint AS noint", "NULL::text AS notext", "NULL::timestamptz AS notime", "17::oid AS oid", "'b'::\"char\" AS ch", "B'101' AS bits", "ROW(1, 'a') AS row", "'5'::money AS money",
	},
	Columns: "id serial PRIMARY KEY, n int UNIQUE, s varchar(20)",
	Slow:    "SELECT pg_sleep(5)",
	Running: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%%%s'",
	Many:    "SELECT n FROM generate_series(1, 30000) n",
	Stalls:  "SELECT n FROM generate_series(1, 10000) n WHERE n < 10000 OR pg_sleep(5) IS NULL",
	Multi:   "SELECT 1 AS a; SELECT 2 AS b, 'x' AS c; SELECT 3 AS d WHERE 1 = 0",
	Script:  "INSERT INTO %[1]s (n) VALUES (1); INSERT INTO %[1]s (n) VALUES (2)",
	Session: "SELECT pg_backend_pid()",
	Kill:    "SELECT pg_terminate_backend(%d, 10000)",
	Alive:   "SELECT count(*) FROM pg_stat_activity WHERE pid = %d",
	Tx:      []string{"SHOW transaction_isolation", "SHOW transaction_read_only"},
	Set:     "SET search_path TO conformance",
	Show:    "SHOW search_path",
	Spoil:   []string{"ALTER TABLE %s ADD COLUMN added int", "DEALLOCATE ALL -- %s", "DISCARD ALL -- %s"},
}

func TestPgxInEveryQueryExecMode(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dsn := withParam(t, testserver.Postgres(t), "default_query_exec_mode", mode)
			exercise(t, conformance.Twin{
				Name:  "pgx, " + mode,
				Plain: openPlain("pgx", dsn), Partitioned: openPartitioned("pgx", dsn),
				Words: postgres,
				Extra: copyFromScenarios,
			})
		})
	}
}

func TestPQ(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	dsn, words := testserver.Postgres(t), postgres
	words.RacesEnded = true // watchCancel does
	exercise(t, conformance.Twin{
		Name:  "lib/pq",
		Plain: openPlain("postgres", dsn), Partitioned: openPartitioned("postgres", dsn),
		Words: words,
		Extra: copyScenarios,
	})
}

func withParam(tb testing.TB, dsn, key, value string) string {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal("cannot parse the server's URL")
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}
