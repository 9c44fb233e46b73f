package conformance_test

import (
	"io"
	"log"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlbulkhead/sqlbulkhead/conformance"
	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// The driver writes each dead connection that it finds to its own log.
func init() { mysql.SetLogger(log.New(io.Discard, "", 0)) }

var mariadb = conformance.Words{
	Arg:   func(int) string { return "?" },
	Do:    "DO ",
	Casts: []string{"CHAR", "SIGNED", "UNSIGNED", "BINARY", "DECIMAL(30,4)", "DATETIME(6)", "DOUBLE", ""},
	Types: []string{
		"1 AS small", "CAST(2 AS SIGNED) AS bigint", "CAST(18446744073709551615 AS UNSIGNED) AS ubigint", "CAST(1.5 AS DECIMAL(8,2)) AS num",
		"1.5e0 AS dbl", "'x' AS text", "CAST('y' AS CHAR(10)) AS ch", "CAST('z' AS BINARY(3)) AS bin", "x'00ff' AS hex", "CAST('2024-02-29' AS DATE) AS date",
		"CAST('2024-02-29 12:30:00' AS DATETIME(6)) AS datetime", "CAST('12:30:01' AS TIME) AS time", "NULL AS nothing", "TRUE AS bool", "'12' AS digits",
		"JSON_OBJECT('a', 1) AS json", "NULLIF(1, 1) AS noint", "YEAR('2024-02-29') AS year", "b'101' AS bits",
	},
	Columns: "id int AUTO_INCREMENT PRIMARY KEY, n int UNIQUE, s varchar(20)",
	Slow:    "SELECT count(*) FROM seq_1_to_50 WHERE SLEEP(0.1) = 0",
	// (*Stmt).Exec of this driver never returns if a query that it runs fails after its columns were sent.
	SlowSet: "SET @n = (SELECT count(*) FROM seq_1_to_50 WHERE SLEEP(0.1) = 0)",
	Running: "SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep' AND INFO LIKE '%%%s' AND INFO NOT LIKE '%%PROCESSLIST%%'",
	Many:    "SELECT seq FROM seq_1_to_60000",
	Stalls:  "SELECT seq FROM seq_1_to_20000 WHERE seq <= 19950 OR SLEEP(0.1) = 1",
	Multi:   "SELECT 1 AS a; SELECT 2 AS b, 'x' AS c; SELECT 3 AS d FROM seq_1_to_1 WHERE 1 = 0",
	Script:  "INSERT INTO %[1]s (n) VALUES (1); INSERT INTO %[1]s (n) VALUES (2)",
	Session: "SELECT CONNECTION_ID()",
	Kill:    "KILL %d",
	Alive:   "SELECT count(*) FROM information_schema.PROCESSLIST WHERE ID = %d",
	Tx:      []string{"SELECT @@tx_isolation", "SELECT @@tx_read_only"},
	Set:     "SET @conformance = 'set'",
	Show:    "SELECT @conformance",
	Spoil:   []string{"ALTER TABLE %s ADD COLUMN added int"},
}

// modes of go-sql-driver/mysql are parameters of its DSN.
var modes = map[string]string{
	"":                                    "",
	", interpolateParams":                 "?interpolateParams=true",
	", multiStatements, parseTime":        "?multiStatements=true&parseTime=true",
	", interpolated multiStatements":      "?interpolateParams=true&multiStatements=true",
	", clientFoundRows, columnsWithAlias": "?clientFoundRows=true&columnsWithAlias=true",
}

func TestMySQLDriverOnMariaDBInEveryMode(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	inEveryMode(t, "go-sql-driver/mysql on MariaDB", testserver.MariaDB(t), mariadb)
}

func TestMySQLDriverOnMySQLInEveryMode(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	inEveryMode(t, "go-sql-driver/mysql on MySQL", testserver.MySQL(t), mysqlWords())
}

// mysqlWords are MySQL's own where they differ.
func mysqlWords() conformance.Words {
	w := mariadb
	digits := "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	w.Slow = "SELECT count(*) FROM " + digits + " a, " + digits + " b WHERE SLEEP(0.1 + 0 * a.d) = 0"
	w.Stalls = "SELECT a.d FROM " + digits + " a, " + digits + " b, " + digits + " c WHERE a.d < 9 OR SLEEP(0.1) = 1"
	w.SlowSet = "SET @n = (" + w.Slow + ")"
	w.Many = "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d FROM " + digits + " a, " + digits + " b, " + digits + " c, " + digits + " e"
	w.Multi = "SELECT 1 AS a; SELECT 2 AS b, 'x' AS c; SELECT 3 AS d WHERE 1 = 0"
	w.Tx = []string{"SELECT @@transaction_isolation", "SELECT @@transaction_read_only"}
	return w
}

func inEveryMode(t *testing.T, name, dsn string, words conformance.Words) {
	t.Helper()
	for mode, params := range modes {
		t.Run("mode"+mode, func(t *testing.T) {
			t.Parallel()
			exercise(t, conformance.Twin{
				Name:  name + mode,
				Plain: openPlain("mysql", dsn+params), Partitioned: openPartitioned("mysql", dsn+params),
				Words: words,
			})
		})
	}
}
