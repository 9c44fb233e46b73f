package integration

import (
	"database/sql"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustAnswer(t *testing.T, db *sql.DB) {
	t.Helper()
	var one int
	if err := db.QueryRowContext(t.Context(), "SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Fatalf("SELECT 1 gave %d, %v", one, err)
	}
}

func TestServersAnswerEveryDriver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		driver string
		dsn    func(testing.TB) string
	}{
		{"pgx", testserver.Postgres},
		{"postgres", testserver.Postgres},
		{"mysql", testserver.MariaDB},
		{"mysql", testserver.MySQL},
		{"sqlite", func(tb testing.TB) string { return tb.TempDir() + "/db" }},
	} {
		t.Run(c.driver, func(t *testing.T) {
			t.Parallel()
			mustAnswer(t, open(t, c.driver, c.dsn(t)))
		})
	}
}

// starts are the servers that a test can have for itself.
var starts = map[string]func(testing.TB) *testserver.Server{
	"pgx":   testserver.StartPostgres,
	"mysql": testserver.StartMariaDB,
}

func TestServerKeepsAddressAndDataOverStopAndKill(t *testing.T) {
	t.Parallel()
	for driver, start := range starts {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			for _, stop := range []func(){s.Stop, s.Kill} {
				mustExec(t, open(t, driver, s.DSN), "CREATE TABLE kept (n int)")
				stop()
				if err := open(t, driver, s.DSN).PingContext(t.Context()); err == nil {
					t.Fatal("a stopped server answered")
				}
				s.Start()
				mustExec(t, open(t, driver, s.DSN), "DROP TABLE kept")
			}
			s.Restart()
			mustAnswer(t, open(t, driver, s.DSN))
		})
	}
}

func mustExec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

func TestKillLeavesNoServerBehindWhileClientsAreBusy(t *testing.T) {
	t.Parallel()
	s := testserver.StartPostgres(t)
	db := open(t, "pgx", s.DSN)
	done := make(chan error)
	go func() {
		_, err := db.Exec("SELECT pg_sleep(600)")
		done <- err
	}()
	for busy := 0; busy == 0; {
		row := db.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
		if err := row.Scan(&busy); err != nil {
			t.Fatal(err)
		}
	}
	s.Kill()
	if err := <-done; err == nil {
		t.Fatal("a statement outlived its server")
	}
	s.Start()
	mustAnswer(t, open(t, "pgx", s.DSN)) // db's idle connections still have the news to tell
}

func TestProxyDelaysEachDirection(t *testing.T) {
	t.Parallel()
	const delay = 20 * time.Millisecond
	for driver, dsn := range map[string]string{"pgx": testserver.Postgres(t), "mysql": testserver.MariaDB(t)} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			addr := testserver.Delay(t, testserver.AddrOf(dsn), delay)
			db := open(t, driver, testserver.WithAddr(dsn, addr))
			mustAnswer(t, db) // the dial takes several round trips
			began := time.Now()
			mustAnswer(t, db)
			if took := time.Since(began); took < 2*delay {
				t.Fatalf("a round trip took %v, less than twice %v", took, delay)
			}
		})
	}
}

func TestProxyHangsAndGoesOn(t *testing.T) {
	t.Parallel()
	dsn := testserver.Postgres(t)
	p := testserver.NewProxy(t, testserver.AddrOf(dsn))
	db := open(t, "pgx", testserver.WithAddr(dsn, p.Addr()))
	mustAnswer(t, db)
	p.Hang()
	done := make(chan error)
	go func() { done <- db.Ping() }()
	select {
	case err := <-done:
		t.Fatalf("a ping came through a hanging network: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	p.Resume()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestProxyCutBreaksOpenConnectionsOnly(t *testing.T) {
	t.Parallel()
	dsn := testserver.MariaDB(t)
	p := testserver.NewProxy(t, testserver.AddrOf(dsn))
	db := open(t, "mysql", testserver.WithAddr(dsn, p.Addr()))
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p.Cut()
	if err := conn.PingContext(t.Context()); err == nil {
		t.Fatal("a connection outlived its cut")
	}
	mustAnswer(t, db)
}

func TestServersLeaveNoGoroutine(t *testing.T) {
	options := goleak.IgnoreCurrent()
	testserver.Postgres(t)
	testserver.MariaDB(t)
	t.Run("one of its own", func(t *testing.T) { testserver.StartPostgres(t).Restart() })
	if err := goleak.Find(options); err != nil {
		t.Fatal(err)
	}
}

func TestPausedServerAnswersNobodyUntilItIsResumed(t *testing.T) {
	t.Parallel()
	for driver, start := range starts {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			db := open(t, driver, s.DSN)
			mustAnswer(t, db)
			s.Pause()
			done := make(chan error)
			go func() { done <- db.PingContext(t.Context()) }()
			select {
			case err := <-done:
				t.Fatalf("a paused server answered: %v", err)
			case <-time.After(100 * ms):
			}
			s.Resume()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			s.Pause()
			s.Kill() // as well as any other
		})
	}
}
