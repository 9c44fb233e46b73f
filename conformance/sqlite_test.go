package conformance_test

import (
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/sqlbulkhead/sqlbulkhead/conformance"
)

var sqlite = conformance.Words{
	Arg:   func(int) string { return "?" },
	Do:    "SELECT ",
	Casts: []string{"TEXT", "INTEGER", "BLOB", "REAL", ""},
	Types: []string{
		"1 AS int", "1.5 AS real", "'x' AS text", "x'00ff' AS blob", "NULL AS nothing", "'12' AS digits", "9223372036854775807 AS big",
		"'2024-02-29 12:30:00' AS time", "1 = 1 AS bool", "datetime('2024-02-29') AS dt",
	},
	Columns:        "id INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER UNIQUE, s VARCHAR(20)",
	Slow:           "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c",
	Many:           "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) SELECT n FROM c",
	Multi:          "SELECT 1 AS a; SELECT 2 AS b, 'x' AS c; SELECT 3 AS d WHERE 1 = 0",
	Script:         "INSERT INTO %[1]s (n) VALUES (1); INSERT INTO %[1]s (n) VALUES (2)",
	Tx:             []string{"PRAGMA read_uncommitted", "PRAGMA query_only"},
	Set:            "PRAGMA cache_size = 77",
	Show:           "PRAGMA cache_size",
	ClosingIsFatal: true,
	Spoil:          []string{"ALTER TABLE %s ADD COLUMN added int"},
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	dsn := "file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)"
	exercise(t, conformance.Twin{
		Name:  "modernc.org/sqlite",
		Plain: openPlain("sqlite", dsn), Partitioned: openPartitioned("sqlite", dsn),
		Words: sqlite,
	})
}
