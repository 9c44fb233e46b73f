package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// patient leaves the pools of a check on a busy machine time to dial; nothing
// that is checked depends on it.
const patient = `"acquire_timeout": "10s"`

// pools is a configuration file with this for each of the standard pools.
func pools(t *testing.T, fields map[string]string) string {
	t.Helper()
	var members []string
	for _, name := range []string{"oltp", "reporting", "batch", "admin"} {
		member := patient
		if fields[name] != "" {
			member += ", " + fields[name]
		}
		members = append(members, fmt.Sprintf("%q: {%s}", name, member))
	}
	return configFile(t, `{"pools": {`+strings.Join(members, ", ")+`}}`)
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pools.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func checkOn(t *testing.T, driver, dsn string, more ...string) outcome {
	t.Helper()
	o := execute(t.Context(), append([]string{"check", "--driver", driver, "--dsn", dsn}, more...)...)
	if u, err := url.Parse(dsn); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok && strings.Contains(o.stdout+o.stderr, password) {
			t.Error("the password is shown")
		}
	}
	return o
}

// mustPass and mustBreak check the exit status and that the report says all of
// want.
func (o outcome) mustPass(t *testing.T, want ...string) {
	t.Helper()
	o.mustSay(t, append(want, "Nothing found that would break")...)
	if o.status != 0 || o.stderr != "" {
		t.Errorf("status %d, standard error %q\n%s", o.status, o.stderr, o.stdout)
	}
}

func (o outcome) mustBreak(t *testing.T, problems int, want ...string) {
	t.Helper()
	o.mustSay(t, want...)
	if o.status != 1 || strings.Count(o.stdout, "\nBREAKS: ") != problems || !strings.Contains(o.stderr, "problem") {
		t.Errorf("status %d, standard error %q\n%s", o.status, o.stderr, o.stdout)
	}
	if strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("standard error is not one line: %q", o.stderr)
	}
}

func (o outcome) mustSay(t *testing.T, want ...string) {
	t.Helper()
	words := strings.Join(strings.Fields(o.stdout), " ")
	for _, text := range want {
		if !strings.Contains(words, text) {
			t.Errorf("not in the report: %q\n%s", text, o.stdout)
		}
	}
}

func TestCheckReportsConnectionsAndTimeoutsOfPostgres(t *testing.T) {
	t.Parallel()
	server := testserver.StartPostgres(t)
	occupy(t, "pgx", server.DSN, 20)
	for _, driver := range []string{"pgx", "postgres"} {
		checkOn(t, driver, server.DSN, "--config", pools(t, nil), "--instances", "4").mustPass(t,
			"PostgreSQL 15", "(admin, batch, oltp, reporting) primary",
			"allows 200 connections, 3 of them reserved; others use 20 now",
			"needed: (17 in pools + 3 for health checks and cancels) × 4 = 80",
			"oltp 10 5s 5s server no", "reporting 3 1m 1m server no",
			"batch 2 15m 15m server no", "admin 2 none none nobody no")
	}
	checkOn(t, "pgx", server.DSN, "--config", pools(t, nil), "--instances", "9").mustPass(t,
		"note: PostgreSQL", "180 connections needed, and only 177 are left beside the 20 in use now")
}

// occupy holds connections of somebody else.
func occupy(t *testing.T, driver, dsn string, n int) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for range n {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
}

// with runs statements as an administrator.
func with(t *testing.T, driver, dsn string, statements ...string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func TestCheckReportsConnectionsAndTimeoutsOfMariaDB(t *testing.T) {
	t.Parallel()
	server := testserver.StartMariaDB(t)
	occupy(t, "mysql", server.DSN, 3)
	checkOn(t, "mysql", server.DSN, "--config", pools(t, map[string]string{"oltp": `"statement_timeout": "1500ms"`})).mustPass(t,
		"MariaDB 10", "primary", "allows 300 connections, and 1 more for an administrator; others use 3 now",
		"needed: (17 in pools + 3 for health checks and cancels) × 1 = 20",
		"oltp 10 1.5s 1.5s server unknown", "admin 2 none none nobody unknown")
}

func TestMoreConnectionsThanTheServerAllowsBreak(t *testing.T) {
	t.Parallel()
	o := checkOn(t, "pgx", testserver.Postgres(t), "--config", pools(t, nil), "--instances", "10")
	o.mustBreak(t, 1, "200 connections needed, and the server allows 197")
	o = checkOn(t, "mysql", testserver.MariaDB(t), "--config", pools(t, nil), "--instances", "16")
	o.mustBreak(t, 1, "320 connections needed, and the server allows 300")
}

// role makes a role that may have so many connections, and returns a DSN for it.
func role(t *testing.T, name string, limit int) (dsn string) {
	t.Helper()
	admin := testserver.Postgres(t)
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal("cannot parse the server's URL")
	}
	u.User = url.UserPassword(name, "pl4inly")
	t.Cleanup(func() { with(t, "pgx", admin, "DROP ROLE "+name) })
	with(t, "pgx", admin, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'pl4inly' CONNECTION LIMIT %d", name, limit))
	return u.String()
}

func TestLimitOfTheRoleBreaks(t *testing.T) {
	t.Parallel()
	dsn := role(t, "check_shop", 30)
	checkOn(t, "pgx", dsn, "--config", pools(t, nil)).mustPass(t)
	checkOn(t, "pgx", dsn, "--config", pools(t, nil), "--instances", "2").mustBreak(t, 1,
		"40 connections needed, and the role check_shop may have 30")
}

func TestLimitOfARoleIsForThePoolsThatUseIt(t *testing.T) {
	t.Parallel()
	config := pools(t, map[string]string{"reporting": fmt.Sprintf(`"dsn": %q`, role(t, "check_reader", 12))})
	checkOn(t, "pgx", testserver.Postgres(t), "--config", config, "--instances", "2").mustPass(t)
	checkOn(t, "pgx", testserver.Postgres(t), "--config", config, "--instances", "3").mustBreak(t, 1,
		"18 connections needed, and the role check_reader may have 12")
}

func TestLimitOfTheAccountBreaks(t *testing.T) {
	t.Parallel()
	admin := testserver.MariaDB(t)
	t.Cleanup(func() { with(t, "mysql", admin, "DROP USER check_shop@'127.0.0.1'") })
	with(t, "mysql", admin, "CREATE USER check_shop@'127.0.0.1' IDENTIFIED BY 'pl4inly' WITH MAX_USER_CONNECTIONS 30")
	o := checkOn(t, "mysql", "check_shop:pl4inly@tcp("+testserver.AddrOf(admin)+")/", "--config", pools(t, nil), "--instances", "2")
	o.mustBreak(t, 1, "40 connections needed, and the account check_shop@127.0.0.1 may have 30",
		"primary or replica: unknown (this account may not SHOW SLAVE STATUS)")
	if strings.Contains(o.stdout+o.stderr, "pl4inly") {
		t.Error("the password is shown")
	}
}

func TestTighterTimeoutOfTheDSNIsNoted(t *testing.T) {
	t.Parallel()
	checkOn(t, "pgx", testserver.Postgres(t)+"&statement_timeout=2000", "--config", pools(t, nil)).mustPass(t,
		`note: pool "oltp": the server, the role or the DSN sets a statement timeout of 2s, which is tighter than 5s and holds`,
		`note: pool "admin" asks for no statement timeout of its own, and that of the server, the role or the DSN holds: 2s`,
		"oltp 10 5s 2s server")
}

func TestConfigurationThatObservesIsCheckedAsItWillBeEnforced(t *testing.T) {
	t.Parallel()
	checkOn(t, "pgx", testserver.Postgres(t), "--config", configFile(t, `{"mode": "observe"}`)).mustPass(t,
		"oltp 10 5s 5s server no", "admin 2 none none nobody no", "needed: (17 in pools + 3",
		`note: the configuration says "mode": "observe", and was checked as it will be in "enforce"`)
}

func TestPoolsOnOneServerAreCountedTogetherWhateverTheirDataSources(t *testing.T) {
	t.Parallel()
	dsn := testserver.Postgres(t)
	config := pools(t, map[string]string{"reporting": fmt.Sprintf(`"dsn": %q, "max_open_conns": 8`, dsn+"&application_name=reports")})
	checkOn(t, "pgx", dsn, "--config", config).mustPass(t,
		"(admin, batch, oltp, reporting)", "needed: (22 in pools + 6 for health checks and cancels) × 1 = 28")
}

func TestPoolWithAServerOfItsOwnIsCountedThere(t *testing.T) {
	t.Parallel()
	shared, replica := testserver.Postgres(t), testserver.StartPostgres(t)
	config := pools(t, map[string]string{"reporting": fmt.Sprintf(`"dsn": %q`, replica.DSN)})
	o := checkOn(t, "pgx", shared, "--config", config, "--instances", "2")
	o.mustPass(t, "(admin, batch, oltp) primary", "needed: (14 in pools + 3 for health checks and cancels) × 2 = 34",
		"(reporting) primary", "needed: (3 in pools + 3 for health checks and cancels) × 2 = 12")

	replica.Stop()
	o = checkOn(t, "pgx", shared, "--config", config)
	o.mustBreak(t, 1, `pool "reporting": cannot connect: dial tcp `+replica.Addr(), "oltp 10 5s 5s server no")
}

func TestReplicaThatDoesNotReplicateIsSeen(t *testing.T) {
	t.Parallel()
	server := testserver.StartMariaDB(t)
	with(t, "mysql", server.DSN, "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_USER='nobody'")
	checkOn(t, "mysql", server.DSN, "--config", pools(t, nil)).mustPass(t, "replica, not replicating")
}

func TestCheckOnSQLiteSaysThatTheClientHoldsTheLimit(t *testing.T) {
	t.Parallel()
	dsn := "file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(5000)"
	checkOn(t, "sqlite", dsn, "--config", pools(t, nil)).mustPass(t, "oltp 10 5s - client -", "admin 2 none - nobody -")
}
