// Package scratch gives a test a PostgreSQL database of its own.
package scratch

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// Postgres returns the DSN of a new, empty database on the server of package testserver. It is dropped when the test is
// over.
func Postgres(tb testing.TB) string {
	tb.Helper()
	dsn := testserver.Postgres(tb)
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		tb.Fatal(err)
	}
	name := "example_" + strings.ToLower(rand.Text())
	tb.Cleanup(func() {
		if _, err := admin.ExecContext(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("drop: %v", err)
		}
		admin.Close()
	})
	if _, err := admin.ExecContext(tb.Context(), "CREATE DATABASE "+name); err != nil {
		tb.Fatal(err)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal("cannot parse the server's URL")
	}
	u.Path = "/" + name
	return u.String()
}
