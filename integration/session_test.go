package integration

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// limited is an oltp pool whose statement timeout is unlike any other, and how each server shows it.
func limited(t *testing.T, tg target, conns int) (r *rig, want string) {
	t.Helper()
	r = setup(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: conns, StatementTimeout: 4321 * ms}))
	if tg.arg == "?" {
		return r, "4.321"
	}
	return r, "4321ms"
}

// C19
func TestEverySessionHasThePoolsTimeoutAlsoAfterOneWasKilled(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r, want := limited(t, tg, 3)
		admin := r.plain()
		for round := range 3 {
			conns, giveBack := r.take(oltp, 3)
			for _, c := range conns {
				if got := ask(t, oltp, c, tg.limit); got != want {
					t.Errorf("round %d: the limit is %s, want %s", round, got, want)
				}
			}
			if round == 1 {
				killSession(t, admin, tg, ask(t, oltp, conns[1], tg.session))
			}
			giveBack()
		}
		// Plain database/sql has no such limit: the test can tell.
		if got := ask(t, oltp, admin, tg.limit); got == want {
			t.Errorf("plain database/sql has %s, too", got)
		}
	})
}

// killSession ends a session and returns when it is gone.
func killSession(t testing.TB, admin *sql.DB, tg target, session string) {
	t.Helper()
	var id int
	if _, err := fmt.Sscan(session, &id); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(fmt.Sprintf(tg.kill, id)); err != nil {
		t.Fatal(err)
	}
	gone := "SELECT count(*) FROM information_schema.PROCESSLIST WHERE ID = %d"
	if tg.arg == "$1" {
		gone = "SELECT count(*) FROM pg_stat_activity WHERE pid = %d"
	}
	eventually(t, 10*time.Second, func() string {
		if ask(t, context.Background(), admin, fmt.Sprintf(gone, id)) != "0" {
			return "the killed session is still there"
		}
		return ""
	})
	if tg.arg == "$1" {
		awaitExit(id)
	}
}

// awaitExit waits for a process of this machine to end, if the server is on it: its socket is open a moment longer than it
// is listed, and a statement sent in that moment is lost, with any pool.
func awaitExit(pid int) {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(ms) {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
			return
		}
	}
}

// refusing is a dialect whose set-up the server answers with an error.
type refusing struct{ stmttimeout.Dialect }

func (refusing) Setup(ctx context.Context, s stmttimeout.Session, _ stmttimeout.Settings) (stmttimeout.Applied, error) {
	return stmttimeout.Applied{}, s.Exec(ctx, "SELECT no_such_column")
}

// C19
func TestConnectionWhoseSetUpFailedIsClosed(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		dsn := withParam(t, tg.dsn(t), "application_name", "refused "+tg.name)
		r := setupOn(t, tg, dsn, partition.WithDialect(refusing{stmttimeout.Postgres()}))
		for range 3 {
			if err := r.db.PingContext(oltp); err == nil || !strings.Contains(err.Error(), "no_such_column") {
				t.Fatalf("got %v, want the server's error", err)
			}
		}
		admin := setup(t, tg)
		admin.noBackend("application_name LIKE 'refused " + tg.name + "%'")
		if s := r.stats(workload.OLTP); s.OpenFailures != 3 || s.Open != 0 || s.InUse != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// P14, C19
func TestSettingsOfOneBorrowerDoNotReachTheNext(t *testing.T) {
	texts := map[string][]string{
		"$1": {
			"SET statement_timeout = 0", "set  Session statement_timeout TO '1h'", "RESET statement_timeout", "RESET ALL", "DISCARD ALL",
			"SELECT set_config('statement_timeout', '0', false)", "SELECT 1; SET statement_timeout = 0",
			"/* why */ SET statement_timeout = 0", "BEGIN; SET statement_timeout = 0; COMMIT",
			"DO $$ BEGIN SET statement_timeout = 0; END $$", "DO $$ BEGIN PERFORM set_config(chr(115) || 'tatement' || chr(95) || 'timeout', '0', false); END $$",
			"UPDATE pg_settings SET setting = '0' WHERE name = 'statement_timeout'",
		},
		"?": {
			"SET max_statement_time = 0", "SET SESSION max_statement_time = 3600", "SET @@max_statement_time = DEFAULT",
			"SET STATEMENT max_statement_time = 0 FOR SELECT 1", "/*!50000 SET max_statement_time = 0 */",
			"BEGIN NOT ATOMIC SET max_statement_time = 0; END", "PREPARE p FROM 'SET max_statement_time = 0'", "EXECUTE p",
		},
	}
	on(t, serverTargets, func(t *testing.T, tg target) {
		r, want := limited(t, tg, 1)
		for i, text := range texts[tg.arg] {
			borrow(t, r, text)
			// A text of its own each time: pgx keeps statements prepared, which DISCARD ALL takes from under it.
			if got := ask(t, oltp, r.db, fmt.Sprintf("%s -- %d", tg.limit, i)); got != want {
				t.Errorf("after %q the next borrower has %s, want %s", text, got, want)
			}
		}
		if s := r.stats(workload.OLTP); s.Opened != 1 {
			t.Errorf("%d connections: the sessions were not the same", s.Opened)
		}
	})
}

// borrow runs a text on a connection that it takes and gives back.
func borrow(t *testing.T, r *rig, text string) {
	t.Helper()
	conns, giveBack := r.take(oltp, 1)
	defer giveBack()
	if _, err := conns[0].ExecContext(oltp, text); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

// P14
func TestSettingsChangedInATransactionOrByAStatementDoNotReachTheNextBorrower(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r, want := limited(t, tg, 1)
		set := "SET max_statement_time = 0"
		if tg.arg == "$1" {
			set = "SET statement_timeout = 0"
		}
		inTx(t, oltp, r.db, func(tx *sql.Tx) {
			if _, err := tx.ExecContext(oltp, set); err != nil {
				t.Fatal(err)
			}
		})
		if got := ask(t, oltp, r.db, tg.limit); got != want {
			t.Errorf("after a transaction: %s, want %s", got, want)
		}
		stmt, err := r.db.PrepareContext(oltp, set)
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		if _, err := stmt.ExecContext(oltp); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, oltp, r.db, tg.limit); got != want {
			t.Errorf("after a prepared statement: %s, want %s", got, want)
		}
	})
}

// C32
func TestSettingsInAPostgresURLHoldBesideOurs(t *testing.T) {
	on(t, postgresTargets, func(t *testing.T, tg target) {
		for _, c := range []struct{ own, want string }{{"150ms", "150ms"}, {"1h", "5s"}, {"0", "5s"}} {
			options := "-c statement_timeout=" + c.own + " -c search_path=pg_temp -c TimeZone=Asia/Tokyo"
			r := setupOn(t, tg, withParam(t, tg.dsn(t), "options", options))
			for setting, want := range map[string]string{
				"statement_timeout": c.want, "search_path": "pg_temp", "TimeZone": "Asia/Tokyo",
			} {
				if got := ask(t, oltp, r.db, "SHOW "+setting); got != want {
					t.Errorf("own timeout %s: %s is %s, want %s", c.own, setting, got, want)
				}
			}
			if c.own != "150ms" {
				continue
			}
			_, err := r.db.ExecContext(oltp, tg.slow)
			var exceeded *stmttimeout.Error
			if !errors.As(err, &exceeded) || exceeded.Limit != 150*ms || !exceeded.ByServer {
				t.Errorf("got %v, want the user's own limit of 150ms", err)
			}
		}
	})
}

// C32
func TestParametersOfAMySQLDSNHoldBesideOurs(t *testing.T) {
	t.Parallel()
	r := setup(t, mariadb)
	admin := in(workload.Admin)
	const user, password = "c32", "p@ss/word"
	r.exec(admin, "CREATE USER "+user+"@'%' IDENTIFIED BY '"+password+"'")
	defer r.exec(admin, "DROP USER "+user+"@'%'")
	// The server may have no certificate: then go on in plain text.
	if err := mysql.RegisterTLSConfig("c32", &tls.Config{InsecureSkipVerify: true}); err != nil {
		t.Fatal(err)
	}
	for own, want := range map[string]string{"0.15": "0.15", "3600": "5", "0": "5"} {
		cfg, err := mysql.ParseDSN(r.dsn)
		if err != nil {
			t.Fatal("cannot parse the server's DSN")
		}
		cfg.User, cfg.Passwd, cfg.DBName = user, password, "information_schema"
		cfg.ParseTime = true
		dsn := cfg.FormatDSN() + "&" + url.Values{
			"connectionAttributes": {"program_name:c32"}, "loc": {"Asia/Tokyo"}, "time_zone": {"'+09:00'"}, "max_statement_time": {own},
			"tls": {"c32"}, "allowFallbackToPlaintext": {"true"},
		}.Encode()
		mine := setupOn(t, mariadb, dsn)
		if got := ask(t, oltp, mine.db, mariadb.limit); got != want {
			t.Errorf("own timeout %s: the limit is %s, want %s", own, got, want)
		}
		if got := ask(t, oltp, mine.db, "SELECT SUBSTRING_INDEX(USER(), '@', 1)"); got != user {
			t.Errorf("connected as %s", got)
		}
		var noon time.Time
		if err := mine.db.QueryRowContext(oltp, "SELECT TIMESTAMP'2026-01-02 12:00:00'").Scan(&noon); err != nil {
			t.Fatal(err)
		}
		if noon.Location().String() != "Asia/Tokyo" || noon.UTC().Hour() != 3 {
			t.Errorf("noon in Tokyo is %v", noon)
		}
	}
}
