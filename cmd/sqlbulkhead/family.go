package main

import (
	"fmt"
	"time"

	// The drivers that the demo can play on.
	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
)

// family is what differs from one kind of server to another. {table} stands for
// the table's name.
type family struct {
	example string // of a data source name; empty where none is needed
	login   string // of the user whose id is its argument
	report  string

	// arguments of a report that takes that long.
	arguments func(time.Duration) []any
}

var (
	sqliteFamily = family{
		login:     "SELECT name FROM {table} WHERE id = ?",
		report:    "SELECT total(" + pauseFunction + "(?)) FROM {table} WHERE id <= ?",
		arguments: pauses,
	}
	postgresFamily = family{
		example:   "postgres://user:password@localhost:5432/database",
		login:     "SELECT name FROM {table} WHERE id = $1",
		report:    "SELECT 1 FROM pg_sleep($1)",
		arguments: seconds,
	}
	mysqlFamily = family{
		example:   "user:password@tcp(localhost:3306)/database",
		login:     "SELECT name FROM {table} WHERE id = ?",
		report:    "SELECT SLEEP(?)",
		arguments: seconds,
	}
)

var families = map[string]family{
	"sqlite":   sqliteFamily,
	"pgx":      postgresFamily,
	"postgres": postgresFamily,
	"mysql":    mysqlFamily,
}

func familyOf(driver string) (family, error) {
	f, known := families[driver]
	if !known {
		return f, fmt.Errorf("unknown driver %q for flag --driver: must be %s", driver, driverNames())
	}
	return f, nil
}

func (f family) wantsDSN(driver string) error {
	return usageError{fmt.Errorf("flag --dsn is required with --driver %s, for example %q", driver, f.example)}
}

func driverNames() string { return "sqlite, pgx, postgres (lib/pq) or mysql (MariaDB too)" }

func seconds(d time.Duration) []any { return []any{d.Seconds()} }

// The driver would log, to standard error and into the progress, every
// connection on which a report was cut short.
func init() { mysql.SetLogger(&mysql.NopLogger{}) }
