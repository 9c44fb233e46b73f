package starvation

import (
	"os"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }

// Not parallel: it measures time.
func TestLoginsDoNotNoticeABadDay(t *testing.T) {
	if underRace || testing.Short() {
		t.Skip("starvation: it takes minutes and measures time, so neither with -race nor with -short: make integration")
	}
	t.Run("PostgreSQL", func(t *testing.T) { Exercise(t, Postgres(t)) })
	t.Run("MariaDB", func(t *testing.T) { Exercise(t, MariaDB(t)) })
	t.Run("MySQL", func(t *testing.T) { Exercise(t, MySQL(t)) })
}
