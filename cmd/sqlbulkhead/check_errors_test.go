package main

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestCheckWithoutWhatItNeedsIsWrongUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                   "--driver is required",
		"--driver pgx":                       "--dsn is required",
		"--driver sqlite":                    "--dsn is required",
		"--driver pgx --dsn x pools.json":    "unexpected argument",
		"--driver pgx --dsn x --instances":   "needs an argument",
		"--driver pgx --dsn x --instances 0": "from 1 to 100000",
	} {
		o := execute(t.Context(), append([]string{"check"}, strings.Fields(args)...)...)
		o.mustFail(t, 2, want, "sqlbulkhead check --help")
	}
	execute(t.Context(), "check", "--driver", "oracle", "--dsn", "x").mustFail(t, 1, `"oracle"`, "pgx")
}

func TestConfigurationThatIsWrongIsOneLineWithoutPassword(t *testing.T) {
	t.Parallel()
	const dsn = "postgres://u:s3cr3t@127.0.0.1:1/d"
	for text, want := range map[string]string{
		`{"pools": {"reporting": {"max_open": 3}}}`:          "max_open",
		`{"pools": {"reporting": {"statement_timeout": 5}}}`: "reporting",
		`{"pools": `:    "line 1",
		``:              "empty",
		`{"budget": 3}`: "budget of 3",
		`{"pools": {"etl": {"statement_timeout": "5s"}}}`:                         "MaxOpenConns is required",
		`{"pools": {"reporting": {"dsn": "postgres://u:0th/3rs3cr3t@h:nope/d"}}}`: `"reporting"`,
		`{"pools": {"reporting": {"dsn_env": "SQLBULKHEAD_NO_SUCH_VARIABLE_0"}}}`: "SQLBULKHEAD_NO_SUCH_VARIABLE_0",
	} {
		o := execute(t.Context(), "check", "--driver", "pgx", "--dsn", dsn, "--config", configFile(t, text))
		o.mustFail(t, 1, "sqlbulkhead check: ", want)
		mustKeepSecret(t, o)
	}
	execute(t.Context(), "check", "--driver", "pgx", "--dsn", dsn, "--config", "/no/such/file").
		mustFail(t, 1, "/no/such/file", "no such file")
}

func TestServerThatDoesNotAnswerIsOneLineWithoutPassword(t *testing.T) {
	t.Parallel()
	unreachable(t, "check")
	unreachable(t, "check", "--config", configFile(t, `{"mode": "observe"}`))
}

func TestInterruptedCheckSaysNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := execute(ctx, "check", "--driver", "pgx", "--dsn", testserver.Postgres(t))
	if o.status != exitInterrupted || o.stdout != "" || o.stderr != "" {
		t.Errorf("%+v", o)
	}
}

// A server that ignores what a pool asks for is not to be had: the library
// refuses the connection. What is left is a server whose answer is looser.
func TestTimeoutThatIsNotInForceBreaks(t *testing.T) {
	t.Parallel()
	oltp := sqlitePool(t)
	for limit, breaks := range map[time.Duration]int{0: 1, 6 * time.Second: 1, 5 * time.Second: 0, 2 * time.Second: 0, 5001 * time.Millisecond: 0} {
		f := &findings{}
		f.judgeTimeout(&session{pool: oltp, kind: kinds["postgres"], limit: limit, pooler: "no"})
		if len(f.breaks) != breaks {
			t.Errorf("limit %v: %q", limit, f.breaks)
		}
	}
}

func TestBehindAPoolerTheServersLimitIsNotOurs(t *testing.T) {
	t.Parallel()
	s := &session{pool: sqlitePool(t), kind: kinds["postgres"], pooler: "yes"}
	f := &findings{}
	d := &dbServer{sessions: []*session{s}, capacity: capacity{max: 20}}
	c := &checkup{instances: 100}
	c.judgeCapacity(f, d)
	if len(f.breaks) != 0 {
		t.Errorf("breaks %q", f.breaks)
	}
	s.pooler = "no"
	c.judgeCapacity(f, d)
	if len(f.breaks) != 1 {
		t.Errorf("without a pooler breaks %q", f.breaks)
	}
}

func TestTwoConnectionsOnOneBackendGiveAPoolerAway(t *testing.T) {
	t.Parallel()
	a, b := &session{backend: 1, pooler: "unknown"}, &session{backend: 2, pooler: "unknown"}
	d := &dbServer{sessions: []*session{a, b}}
	if d.shareBackends(); d.behindPooler() {
		t.Error("two backends are no pooler")
	}
	b.backend = 1
	if d.shareBackends(); a.pooler != "yes" || b.pooler != "yes" {
		t.Errorf("pooler %s, %s", a.pooler, b.pooler)
	}
}

// sqlitePool is a pool that asks for a statement timeout of 5 s.
func sqlitePool(t *testing.T) *partition.Pool {
	t.Helper()
	db, err := partition.Open("sqlite", "file:"+t.TempDir()+"/db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	reg, _ := partition.RegistryOf(db)
	pool, ok := reg.Pool(workload.OLTP)
	if !ok {
		t.Fatal("no oltp pool")
	}
	return pool
}

func TestLagOfAReplicaThatHasAppliedNothingIsUnknown(t *testing.T) {
	t.Parallel()
	if got := behind(sql.NullFloat64{}); got != lagUnknown {
		t.Error(got)
	}
	if got := behind(sql.NullFloat64{Float64: 3.004, Valid: true}); got != "replica, 3s behind" {
		t.Error(got)
	}
}
