package starvation

import (
	"fmt"
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
	t.Run("PostgreSQL", func(t *testing.T) { Exercise(t, announced(Postgres(t))) })
	t.Run("MariaDB", func(t *testing.T) { Exercise(t, announced(MariaDB(t))) })
	t.Run("MySQL", func(t *testing.T) { Exercise(t, announced(MySQL(t))) })
}

// announced adds a container to the servers that the run's summary names, as
// internal/testserver does with its own.
func announced(s Server) Server {
	if c, ok := s.(contained); ok {
		fmt.Println("servers: " + c.Server.Name())
	}
	return s
}
