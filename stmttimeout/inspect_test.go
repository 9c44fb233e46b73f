package stmttimeout

import (
	"strings"
	"testing"
)

// inspected are the dialects whose Inspect reads a text.
var inspected = []Dialect{Postgres(), MySQL(), MariaDB()}

func TestTextsThatMayChangeSettingsAreSeenByEveryDialect(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"SET statement_timeout = 0",
		"set Statement_Timeout to default",
		`SET "statement_timeout" = 0`,
		"SET SESSION lock_timeout = '1s'",
		"SELECT 1; SET LOCAL idle_in_transaction_session_timeout = 0",
		"SELECT set_config('statement_timeout', '0', false)",
		"SELECT SET_CONFIG('stat' || 'ement_t' || 'imeout', '0', false)",
		"SELECT pg_catalog.set_config($1, $2, $3)",
		"UPDATE pg_settings SET setting = '0' WHERE name = 'statement_timeout'",
		"SET application_name = 'x'",
		"SET default_transaction_read_only = off",
		"SET max_statement_time = 0",
		"SET STATEMENT max_statement_time=1 FOR SELECT 1",
		"SET @@SESSION.MAX_STATEMENT_TIME=0",
		"SET max_execution_time=0",
		"SET SESSION `max_execution_time` = 1000",
		"SET @@session.transaction_read_only = 0",
		"SET innodb_lock_wait_timeout = 1",
		"SET idle_transaction_timeout = 1",
		"RESET ALL",
		"reset statement_timeout",
		"  \t\r\n\f\vReSeT all",
		"DISCARD ALL",
		"discard all;",
		"SELECT 1; RESET ALL",
		"SELECT 1;RESET ALL",
		"SELECT 1 ; ; \n discard all",
		"-- tidy up\nRESET ALL",
		"/* tidy up */ RESET ALL",
		"/* a */ /* b */-- c\n\t/**/RESET ALL",
		"SELECT 1; -- then\n DISCARD ALL",
		"EXECUTE later",
		"EXECUTE IMMEDIATE concat('SET max_', 'x')",
	} {
		for _, d := range inspected {
			if !d.Inspect(query).Has(TouchesSettings) {
				t.Errorf("%s: %q was not seen", d.Name(), query)
			}
		}
	}
}

func TestOtherTextsTouchNoSettings(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"",
		";",
		"_",
		"SELECT 1",
		"SELECT * FROM password_reset_tokens WHERE reset = true",
		"SELECT reset FROM users",
		"UPDATE users SET reset = $1, discard = $2",
		"SELECT resetting FROM t; SELECT reset_at FROM t",
		"resets all",
		"reset_all()",
		"discarded",
		"INSERT INTO jobs (run_time, time_limit, config_name, name_only) VALUES ($1, $2, $3, $4)",
		"SELECT statement_timestamp(), STATEMENT_TIMESTAMP()",
		"SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1",
		"SELECT /*+ max_execution_time (1000) */ 1",
		"SELECT _t, _c, _o, _n, x_",
		"INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET a = excluded.a",
		"SET search_path = app",
		"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
		"SET LOCAL work_mem = '64MB'",
		"SET SESSION AUTHORIZATION app",
		"/* RESET ALL */ SELECT 1",
		"-- RESET ALL",
		"/* RESET ALL",
		"BEGIN READ ONLY",
	} {
		for _, d := range inspected {
			if d.Inspect(query).Has(TouchesSettings) {
				t.Errorf("%s: %q was seen", d.Name(), query)
			}
		}
	}
}

func TestCommandsThatTouchSettingsOfOneServer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		query              string
		postgres, mysqlToo bool
	}{
		{"SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", true, false},
		{"set\n/* */session characteristics as transaction read write", true, false},
		{"DO $$ BEGIN EXECUTE 'SET statement_' || 'timeout = 0'; END $$", true, false},
		{"SET SESSION TRANSACTION READ WRITE", false, true},
		{"set local transaction read write", false, true},
		{"/*!50000 SET SESSION TRANSACTION READ WRITE */", false, true},
		{"/*M!100100 SET SESSION TRANSACTION READ WRITE */", false, true},
		{"/*!999999 an old server skips this */ SET SESSION TRANSACTION READ WRITE", false, true},
		{"/*! SELECT */ /*! SET SESSION TRANSACTION READ WRITE", false, true},
		{"/*! SELECT 1", false, false},
		{"/* x */ /*! set session transaction read write */", false, true},
		{"# a line\nSET SESSION TRANSACTION READ WRITE", false, true},
		{"/* /* */ SET SESSION TRANSACTION READ WRITE", false, true}, // comments do not nest
		{"DO SLEEP(1)", true, false},
		{"/* /* */ */ RESET ALL", true, false}, // comments nest
		{"/*! a comment */ RESET ALL", true, true},
		{"-- a line\rRESET ALL", true, false},
	}
	for _, tt := range tests {
		for _, d := range inspected {
			want := tt.mysqlToo
			if d == Postgres() {
				want = tt.postgres
			}
			if got := d.Inspect(tt.query).Has(TouchesSettings); got != want {
				t.Errorf("%s: %q: %v", d.Name(), tt.query, got)
			}
		}
	}
}

func TestPostgresAndMariaDBLimitEveryStatement(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"", "SELECT 1", "UPDATE t SET a = 1", "CALL p()", "SET statement_timeout = 0"} {
		for _, d := range []Dialect{Postgres(), MariaDB()} {
			if !d.Inspect(query).Has(ServerEnforced) {
				t.Errorf("%s: %q", d.Name(), query)
			}
		}
	}
}

func TestMySQLLimitsPlainSelectAlone(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"SELECT 1":                     true,
		"select * from t where id = ?": true,
		"\n\t SELECT\n1":               true,
		"/* report */ SELECT 1":        true,
		"-- report\nSELECT 1":          true,
		"# report\nSELECT 1":           true,
		"SELECT(1)":                    true,
		"SELECT * FROM orders WHERE format = 'form'": true,
		"SELECT intos, locked, FORMAT(x) FROM t":     true,

		"":                                      false,
		"UPDATE t SET a = 1":                    false,
		"INSERT INTO t SELECT 1":                false,
		"SELECT 1 INTO @x":                      false,
		"SELECT a\nINTO\nOUTFILE '/x' FROM t":   false,
		"SELECT * FROM t FOR UPDATE":            false,
		"SELECT * FROM t for\tshare":            false,
		"SELECT * FROM t LOCK IN SHARE MODE":    false,
		"SELECT 1; UPDATE t SET a = 1":          false,
		"(SELECT 1)":                            false,
		"WITH x AS (SELECT 1) SELECT * FROM x":  false,
		"/*!50000 SELECT 1 */":                  false,
		"/* never closed SELECT 1":              false,
		"SELECT /*+ MAX_EXECUTION_TIME(0) */ 1": false,
		"SELECTED":                              false,
		"CALL p()":                              false,
		"EXPLAIN SELECT 1":                      false,
		"SHOW TABLES":                           false,
		"SELECTÄ":                               false,
	}
	for query, want := range tests {
		if got := MySQL().Inspect(query).Has(ServerEnforced); got != want {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
	}
}

func TestInspectAllocatesNothing(t *testing.T) {
	for _, d := range inspected {
		for _, query := range benchmarkTexts {
			if n := testing.AllocsPerRun(100, func() { d.Inspect(query) }); n != 0 {
				t.Errorf("%s: %v allocations for %q", d.Name(), n, query)
			}
		}
	}
}

func FuzzInspect(f *testing.F) {
	for _, seed := range []string{
		"SELECT 1", "SET statement_timeout = 0", "/* x */ RESET ALL", "SELECT 1; DISCARD ALL", "/* /* */ */", "--", "#", "/*!", "/*M!1",
		"SELECT /*+ MAX_EXECUTION_TIME(1) */ 1 FOR UPDATE", "set session transaction", "_", "x_time", "\xff_", "/*/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if strings.Contains(query, "/*m!") {
			t.Skip("in upper case this comment is code")
		}
		for _, d := range inspected {
			traits := d.Inspect(query)
			if upper := d.Inspect(upperASCII(query)); upper != traits {
				t.Errorf("%s: %q: %b, in upper case %b", d.Name(), query, traits, upper)
			}
			for _, blank := range []string{" ", "\n", "/* c */", "-- c\n"} {
				if got := d.Inspect(blank + query); got != traits {
					t.Errorf("%s: %q: %b, after %q %b", d.Name(), query, traits, blank, got)
				}
			}
			for _, touching := range []string{query + "; SET statement_timeout = 0", query + ";RESET ALL", "RESET ALL;" + query} {
				if !d.Inspect(touching).Has(TouchesSettings) {
					t.Errorf("%s: %q was not seen", d.Name(), touching)
				}
			}
		}
	})
}

// upperASCII leaves the bytes of other characters, and of invalid ones, as they are.
func upperASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			b[i] = c - 0x20
		}
	}
	return string(b)
}

var benchmarkTexts = map[string]string{
	"short":      "SELECT 1",
	"100 bytes":  "SELECT id, email, created_at, last_login FROM users WHERE tenant_id = $1 AND email = $2 LIMIT 1 -- x",
	"insert":     `INSERT INTO "order_items" ("order_id","product_id","unit_price","created_at","updated_at") VALUES ($1,$2,$3,$4,$5) RETURNING "id"`,
	"16 kB list": "SELECT id FROM t WHERE id IN (" + strings.Repeat("1234567,", 2000) + "0)",
	"touching":   "SET statement_timeout = 0",
}

// BenchmarkInspect's baseline is the one pass over the text that looking anything up by it costs too.
func BenchmarkInspect(b *testing.B) {
	for name, query := range benchmarkTexts {
		for _, d := range inspected {
			b.Run(name+"/"+d.Name(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					d.Inspect(query)
				}
			})
		}
		b.Run(name+"/baseline=map", func(b *testing.B) {
			seen := map[string]Traits{query: ServerEnforced}
			probe := strings.Clone(query)
			b.ReportAllocs()
			for b.Loop() {
				_ = seen[probe]
			}
		})
	}
}
