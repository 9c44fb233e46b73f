package testserver

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
)

// verdict is a testing.TB that remembers how a helper ended the test.
type verdict struct {
	testing.TB
	skipped, failed string
}

func (v *verdict) Helper() {}

func (v *verdict) Skip(args ...any) {
	v.skipped = args[0].(string)
	runtime.Goexit()
}

func (v *verdict) Fatal(args ...any) {
	v.failed = args[0].(string)
	runtime.Goexit()
}

func verdictOf(f func(testing.TB)) *verdict {
	v := &verdict{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(v)
	}()
	<-done
	return v
}

func absent(name string, optional bool) *family {
	return &family{
		name: name, variable: "SQLBULKHEAD_ABSENT_DSN", debian: "nothing", optional: optional,
		find: func() (engine, bool) { return nil, false },
	}
}

func TestMissingServerSkipsWithAdvice(t *testing.T) {
	t.Setenv(requireVariable, "")
	v := verdictOf(func(tb testing.TB) { absent("Nothing", false).dsn(tb) })
	want := "testserver: no Nothing here: install the Debian package nothing or set SQLBULKHEAD_ABSENT_DSN"
	if v.skipped != want || v.failed != "" {
		t.Errorf("got skip %q, failure %q, want the skip %q", v.skipped, v.failed, want)
	}
}

func TestMissingServerFailsWhereServersAreRequired(t *testing.T) {
	t.Setenv(requireVariable, "1")
	for _, use := range []func(testing.TB){
		func(tb testing.TB) { absent("Nothing", false).dsn(tb) },
		func(tb testing.TB) { absent("Nothing", false).start(tb) },
	} {
		if v := verdictOf(use); v.failed == "" {
			t.Errorf("no failure but the skip %q", v.skipped)
		}
	}
	if v := verdictOf(func(tb testing.TB) { absent("Nothing", true).dsn(tb) }); v.skipped == "" {
		t.Errorf("an optional server failed the test: %q", v.failed)
	}
}

func TestEnvironmentComesFirst(t *testing.T) {
	t.Setenv("SQLBULKHEAD_ABSENT_DSN", "dsn with:password@")
	f := absent("Nothing", false)
	if dsn := f.dsn(t); dsn != "dsn with:password@" {
		t.Errorf("got %q", dsn)
	}
	if source := f.source.Load(); source != "from SQLBULKHEAD_ABSENT_DSN" {
		t.Errorf("the summary would say %q", source)
	}
}

func TestSummaryNamesEveryServer(t *testing.T) {
	t.Parallel()
	want := regexp.MustCompile(`^servers: PostgreSQL [^,]+, MariaDB [^,]+, MySQL none, PgBouncer [^,]+$`)
	if got := Summary(); !want.MatchString(got) {
		t.Errorf("got %q, want %s", got, want)
	}
}

func TestPostgresNamedByTheEnvironmentIsTheOnlyOne(t *testing.T) {
	e, ok := findPostgres()
	if !ok {
		postgresFamily.missing(t)
	}
	t.Setenv(binVariable, e.(postgres).bin)
	if named, ok := findPostgres(); !ok || named != e {
		t.Errorf("found %v, %v, want %v", named, ok, e)
	}
	t.Setenv(binVariable, t.TempDir())
	if other, ok := findPostgres(); ok {
		t.Errorf("found %v instead", other)
	}
	v := verdictOf(func(tb testing.TB) { postgresFamily.missing(tb) })
	if want := "testserver: no PostgreSQL in the directory that SQLBULKHEAD_POSTGRES_BIN names"; v.failed != want {
		t.Errorf("got failure %q, skip %q, want the failure %q", v.failed, v.skipped, want)
	}
}

func TestNewestPostgresWins(t *testing.T) {
	t.Parallel()
	bins := []string{"/usr/lib/postgresql/9.6/bin", "/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/17/bin"}
	for i, bin := range bins[1:] {
		if majorOf(bin) <= majorOf(bins[i]) {
			t.Errorf("%s is not newer than %s", bin, bins[i])
		}
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	e, ok := findPostgres()
	if !ok {
		postgresFamily.missing(t)
	}
	s, err := newServer(e)
	if err != nil {
		t.Fatal(err)
	}
	Stop()
	if _, err := os.Stat(filepath.Dir(s.dir)); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", filepath.Dir(s.dir), err)
	}
	if c, err := net.Dial("tcp", s.Addr()); err == nil {
		c.Close()
		t.Error("the server still runs")
	}
}
