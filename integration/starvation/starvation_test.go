package starvation

import (
	"os"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }

// Not parallel: it measures time.
func TestLoginsDoNotNoticeABadDay(t *testing.T) {
	for name, server := range map[string]func(testing.TB) Server{"PostgreSQL": Postgres, "MariaDB": MariaDB, "MySQL": MySQL} {
		t.Run(name, func(t *testing.T) { Exercise(t, server(t)) })
	}
}
