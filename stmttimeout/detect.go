package stmttimeout

import (
	sqldriver "database/sql/driver"
	"reflect"
	"strings"
)

// ForDriver returns the dialect that a driver's package speaks.
//
// A nil dialect with known true means a driver of the MySQL family: MySQL or MariaDB, and the server must be asked
// ([FromVersion]). A nil dialect with known false means a driver that is not known, such as a wrapper: the server may be
// asked, and may refuse.
func ForDriver(d sqldriver.Driver) (dialect Dialect, known bool) {
	if d == nil {
		return nil, false
	}
	t := reflect.TypeOf(d)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return forPackage(t.PkgPath())
}

func forPackage(path string) (dialect Dialect, known bool) {
	switch path {
	case "github.com/lib/pq":
		return Postgres(), true
	case "github.com/go-sql-driver/mysql":
		return nil, true
	case "modernc.org/sqlite",
		"github.com/mattn/go-sqlite3",
		"github.com/ncruces/go-sqlite3/driver",
		"github.com/glebarez/go-sqlite",
		"github.com/glebarez/sqlite":
		return SQLite(), true
	}
	// One package per major version: pgx/stdlib, pgx/v4/stdlib, pgx/v5/stdlib.
	if strings.HasPrefix(path, "github.com/jackc/pgx/") && strings.HasSuffix(path, "/stdlib") {
		return Postgres(), true
	}
	return nil, false
}

// FromVersion returns the dialect of the server whose SELECT version() answered with this text. CockroachDB, YugabyteDB
// and Redshift speak PostgreSQL's dialect; a bare version number such as 8.4.0 or 8.0.11-TiDB-v7.5.0 is MySQL's.
func FromVersion(version string) (Dialect, bool) {
	lower := strings.ToLower(version)
	switch {
	case strings.Contains(lower, "mariadb"):
		return MariaDB(), true
	case strings.HasPrefix(lower, "postgresql "), strings.HasPrefix(lower, "cockroachdb "):
		return Postgres(), true
	case strings.Contains(lower, "mysql"), bareVersion(lower):
		return MySQL(), true
	}
	return nil, false
}

// bareVersion reports whether text is three numbers with dots between and then either nothing or a suffix after a dash.
// Other servers that answer with a number have more numbers (ClickHouse) or fewer.
func bareVersion(text string) bool {
	text, _, _ = strings.Cut(text, "-")
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if part == "" || strings.Trim(part, "0123456789") != "" {
			return false
		}
	}
	return len(parts) == 3
}
