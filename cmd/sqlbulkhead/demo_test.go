package main

import (
	"context"
	"database/sql"
	"fmt"
	"html"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// brief is a demo that is over in two seconds: what waits behind the reports
// does so for all of its patience.
var brief = []string{"demo", "--duration", "400ms", "--hold", "20s", "--connections", "10"}

// rows are the arrangements in the table on standard output, without names.
func (o outcome) rows(t *testing.T) map[string][]string {
	t.Helper()
	_, table, ok := strings.Cut(o.stdout, "arrangement")
	if o.status != 0 || o.stderr != "" || !ok {
		t.Fatalf("%+v", o)
	}
	rows := make(map[string][]string)
	for _, line := range strings.Split(table, "\n") {
		for _, name := range []string{"no reports", "one pool of 10", "partitions 7+3"} {
			if cells, ok := strings.CutPrefix(line, name+" "); ok {
				rows[name] = strings.Fields(cells)
			}
		}
	}
	if len(rows) != 3 {
		t.Fatalf("not three rows:\n%s", o.stdout)
	}
	return rows
}

// mustShowTheDifference checks what the demo is there for.
func (o outcome) mustShowTheDifference(t *testing.T) {
	t.Helper()
	rows := o.rows(t)
	if rows["one pool of 10"][1] == "0" {
		t.Errorf("the one pool did not suffer:\n%s", o.stdout)
	}
	if parts := rows["partitions 7+3"]; parts[0] != "40" || parts[1] != "0" {
		t.Errorf("the partitions did not serve every login:\n%s", o.stdout)
	}
	if strings.Contains(o.stdout, "another error") {
		t.Error(o.stdout)
	}
}

// cleanRoom gives a test a directory for temporary files, and checks in the end
// that neither a file nor a goroutine is left.
func cleanRoom(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, before)
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

func TestDemoOnSQLiteShowsTheDifferenceAndLeavesNothing(t *testing.T) {
	cleanRoom(t)
	execute(t.Context(), brief...).mustShowTheDifference(t)
}

// interrupter cancels when it has seen a text.
type interrupter struct {
	strings.Builder
	at     string
	cancel func()
}

func (w *interrupter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.at) {
		w.cancel()
	}
	return w.Builder.Write(p)
}

func TestInterruptEndsTheDemoCleanlyAtEveryStage(t *testing.T) {
	for _, at := range []string{"logins a second", "no reports ", "one pool of 10   1/", "partitions 7+3   1/"} {
		t.Run(at, func(t *testing.T) {
			cleanRoom(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out, stderr := &interrupter{at: at, cancel: cancel}, new(strings.Builder)
			begin := time.Now()
			status := run(ctx, append(brief, "--duration", "1100ms"), out, stderr)
			if status != 130 || stderr.Len() != 0 || strings.Contains(out.String(), "arrangement") {
				t.Errorf("exit status %d, %q, %q", status, stderr, out)
			}
			if took := time.Since(begin); took > 15*time.Second {
				t.Errorf("took %v: a report was waited for", took)
			}
		})
	}
}

// servers are the drivers that need one.
var servers = []struct {
	name, driver string
	dsn          func(testing.TB) string
}{
	{"pgx", "pgx", testserver.Postgres},
	{"pq", "postgres", testserver.Postgres},
	{"MariaDB", "mysql", testserver.MariaDB},
	{"MySQL", "mysql", testserver.MySQL},
}

func TestDemoOnServersShowsTheDifferenceAndDropsItsTable(t *testing.T) {
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			dsn := s.dsn(t)
			before := goleak.IgnoreCurrent()
			execute(t.Context(), append(brief, "--driver", s.driver, "--dsn", dsn)...).mustShowTheDifference(t)
			mustHaveNoTable(t, s.driver, dsn)
			mustLeaveNoGoroutine(t, before)
		})
	}
}

// mustLeaveNoGoroutine waits for a question whether a statement has ended: nobody else does, and a server may take a second
// to answer.
func mustLeaveNoGoroutine(t *testing.T, before goleak.Option) {
	t.Helper()
	err := goleak.Find(before)
	for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); {
		err = goleak.Find(before)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestInterruptDropsTheTable(t *testing.T) {
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			dsn := s.dsn(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &interrupter{at: "one pool of 10   1/", cancel: cancel}
			args := append(brief, "--driver", s.driver, "--dsn", dsn, "--duration", "1100ms")
			if status := run(ctx, args, out, out); status != 130 {
				t.Errorf("exit status %d, %s", status, out)
			}
			mustHaveNoTable(t, s.driver, dsn)
		})
	}
}

func mustHaveNoTable(t *testing.T, driver, dsn string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	row := db.QueryRow("SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'sqlbulkhead_demo_%'")
	if err := row.Scan(&n); err != nil || n != 0 {
		t.Errorf("%d tables left behind, %v", n, err)
	}
}

func TestDemoPlaysInAFileOfTheUserAndLeavesNoTable(t *testing.T) {
	cleanRoom(t)
	path := t.TempDir() + "/mine.sqlite"
	execute(t.Context(), append(brief, "--dsn", path)...).mustShowTheDifference(t)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d tables left behind, %v", n, err)
	}
}

func TestBadDSNIsOneLineWithoutPassword(t *testing.T) {
	t.Parallel()
	for dsn, driver := range map[string]string{
		"postgres://u:s3cr3t@h:port/d":       "pgx",
		"postgres://u:s3c/r3t@h/d":           "postgres",
		"u:s3cr3t@tcp(h:1":                   "mysql",
		":memory:":                           "sqlite",
		"file:x?mode=memory&cache=shared":    "sqlite",
		"file:///no/such/dir/x?_auth=s3cr3t": "sqlite",
	} {
		o := execute(t.Context(), "demo", "--driver", driver, "--dsn", dsn)
		o.mustFail(t, 1, "sqlbulkhead demo: ")
		mustKeepSecret(t, o)
	}
}

func TestUnreachableServerIsOneLineWithoutPassword(t *testing.T) {
	t.Parallel()
	unreachable(t, "demo")
}

// unreachable has a command try a server that is not there, through each driver.
func unreachable(t *testing.T, command string, more ...string) {
	t.Helper()
	closed := closedPort(t)
	for driver, dsn := range map[string]string{
		"pgx":      "postgres://u:s3cr3t@%s/d",
		"postgres": "postgres://u:s3cr3t@%s/d?sslmode=disable",
		"mysql":    "u:s3cr3t@tcp(%s)/d",
	} {
		o := execute(t.Context(), append([]string{command, "--driver", driver, "--dsn", fmt.Sprintf(dsn, closed)}, more...)...)
		o.mustFail(t, 1, "sqlbulkhead "+command+": cannot connect: dial tcp "+closed, "refused")
		mustKeepSecret(t, o)
	}
}

func TestWrongPasswordIsOneLineWithoutIt(t *testing.T) {
	t.Parallel()
	for driver, dsn := range map[string]string{
		"pgx":      "postgres://nobody:s3cr3t@%s/postgres?sslmode=disable",
		"postgres": "postgres://nobody:s3cr3t@%s/postgres?sslmode=disable",
	} {
		o := execute(t.Context(), "demo", "--driver", driver, "--dsn", fmt.Sprintf(dsn, testserver.AddrOf(testserver.Postgres(t))))
		o.mustFail(t, 1, "cannot connect", "password authentication failed", "nobody")
		mustKeepSecret(t, o)
	}
}

func mustKeepSecret(t *testing.T, o outcome) {
	t.Helper()
	for _, piece := range []string{"s3c", "r3t"} {
		if strings.Contains(o.stderr+o.stdout, piece) {
			t.Errorf("the password is shown: %s", o.stderr)
		}
	}
}

// closedPort is an address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestReportIsAPageWithAPlotPerArrangement(t *testing.T) {
	path := t.TempDir() + "/page.html"
	if o := execute(t.Context(), append(brief, "--report", path)...); o.status != 0 || o.stderr != "" {
		t.Fatalf("%+v", o)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"no reports", "one pool of 10", "partitions 7+3"} {
		if !strings.Contains(html.UnescapeString(string(page)), `aria-label="`+name+": ") {
			t.Errorf("no plot of %s", name)
		}
	}
}
