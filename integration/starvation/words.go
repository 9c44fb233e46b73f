package starvation

import (
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// words are a kind of server's words for what the days need. The tables are the
// same everywhere.
type words struct {
	login    string // its argument is a user's number
	report   string // waits as many seconds, a verb for fmt, and burns no processor
	million  string // rows, which the server does not collect before it sends the first
	visit    string // writes to the row of the user whose number is its argument
	sessions string // numbers of the pools' sessions in the database that is its argument; see watcher
	kill     string // ends the session of a number, a verb for fmt
	drop     string // the database of a name, a verb for fmt, whoever is still in it

	// in returns the DSN with another database.
	in func(dsn, database string) (string, error)
}

var (
	postgresWords = words{
		login:    "SELECT name FROM users WHERE id = $1",
		report:   "SELECT pg_sleep(%g)",
		million:  "SELECT a.id FROM users a, users b",
		visit:    "UPDATE users SET visits = visits + 1 WHERE id = $1",
		sessions: "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend' AND application_name NOT LIKE '%/control'",
		kill:     "SELECT pg_terminate_backend(%d)",
		drop:     "DROP DATABASE %s WITH (FORCE)",
		in:       postgresIn,
	}
	mysqlWords = words{
		login:    "SELECT name FROM users WHERE id = ?",
		report:   "SELECT count(*) FROM users WHERE id <= 20 AND SLEEP(%g / 20) = 0",
		million:  "SELECT a.id FROM users a, users b",
		visit:    "UPDATE users SET visits = visits + 1 WHERE id = ?",
		sessions: "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ?",
		kill:     "KILL %d",
		drop:     "DROP DATABASE %s",
		in:       mysqlIn,
	}
)

var wordsOf = map[string]words{"postgres": postgresWords, "mysql": mysqlWords, "mariadb": mysqlWords}

func postgresIn(dsn, database string) (string, error) {
	if !strings.Contains(dsn, "://") {
		return dsn + " dbname=" + database, nil // the last one holds
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errBadDSN
	}
	u.Path = "/" + database
	return u.String(), nil
}

func mysqlIn(dsn, database string) (string, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", errBadDSN
	}
	config.DBName = database
	return config.FormatDSN(), nil
}
