// Package integration is the suite that runs on real servers.
package integration

import (
	"os"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"

	// The four drivers that the suite runs on.
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"
)

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }
