package stmttimeout

import (
	sqldriver "database/sql/driver"
	"testing"
)

type unknownDriver struct{ sqldriver.Driver }

func TestDriversAreKnownByTheirPackage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		path  string
		want  Dialect
		known bool
	}{
		{"github.com/jackc/pgx/v5/stdlib", Postgres(), true},
		{"github.com/jackc/pgx/v4/stdlib", Postgres(), true},
		{"github.com/jackc/pgx/stdlib", Postgres(), true},
		{"github.com/lib/pq", Postgres(), true},
		{"github.com/go-sql-driver/mysql", nil, true},
		{"modernc.org/sqlite", SQLite(), true},
		{"github.com/mattn/go-sqlite3", SQLite(), true},
		{"github.com/ncruces/go-sqlite3/driver", SQLite(), true},
		{"github.com/glebarez/go-sqlite", SQLite(), true},
		{"github.com/XSAM/otelsql", nil, false},
		{"github.com/DATA-DOG/go-sqlmock", nil, false},
		{"github.com/lib/pqx", nil, false},
		{"example.org/jackc/pgx/v5/stdlib", nil, false},
		{"", nil, false},
	}
	for _, tt := range tests {
		if d, known := forPackage(tt.path); d != tt.want || known != tt.known {
			t.Errorf("%s: %v, %v", tt.path, d, known)
		}
	}
}

func TestDriversOfOtherPackagesAreUnknown(t *testing.T) {
	t.Parallel()
	for _, driver := range []sqldriver.Driver{nil, unknownDriver{}, &unknownDriver{}, (*unknownDriver)(nil)} {
		if d, known := ForDriver(driver); d != nil || known {
			t.Errorf("%T: %v, %v", driver, d, known)
		}
	}
}

func TestServersAreKnownByTheirVersion(t *testing.T) {
	t.Parallel()
	tests := map[string]Dialect{
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc, 64-bit":           Postgres(),
		"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2 20041017, Redshift 1.0.12103": Postgres(),
		"PostgreSQL 11.2-YB-2.18.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 15.0.3, 64-bit":     Postgres(),
		"CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)":                Postgres(),
		"10.11.19-MariaDB-0+deb12u1":      MariaDB(),
		"5.5.5-10.6.12-MariaDB-1:10.6.12": MariaDB(),
		"11.4.2-mariadb":                  MariaDB(),
		"8.4.0":                           MySQL(),
		"8.0.35-27":                       MySQL(),
		"5.7.44-log":                      MySQL(),
		"8.0.11-TiDB-v7.5.0":              MySQL(),
		"8.0.mysql_aurora.3.05.2":         MySQL(),
		"24.3.1.2672":                     nil, // ClickHouse
		"v1.1.0":                          nil, // DuckDB
		"430":                             nil,
		"8.4":                             nil,
		"..":                              nil,
		"":                                nil,
		"Microsoft SQL Server 2022 (RTM)": nil,
	}
	for version, want := range tests {
		if d, ok := FromVersion(version); d != want || ok != (want != nil) {
			t.Errorf("%q: %v, %v", version, d, ok)
		}
	}
}
