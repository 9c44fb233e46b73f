package main

import (
	"strings"
	"testing"
)

// report feeds lines of go test -json, written with ' for ", to a summary.
func report(t *testing.T, lines ...string) string {
	t.Helper()
	var out strings.Builder
	s := newSummary(&out)
	if err := s.read(strings.NewReader(strings.ReplaceAll(strings.Join(lines, "\n"), "'", `"`))); err != nil {
		t.Fatal(err)
	}
	s.close()
	return out.String()
}

func mustEqual(t *testing.T, got string, lines ...string) {
	t.Helper()
	if want := strings.Join(lines, "\n") + "\n"; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestPassingPackageIsOneLine(t *testing.T) {
	t.Parallel()
	mustEqual(t, report(t,
		`{'Action':'start','Package':'p'}`,
		`{'Action':'run','Package':'p','Test':'TestA'}`,
		`{'Action':'output','Package':'p','Test':'TestA','Output':'=== RUN   TestA\n'}`,
		`{'Action':'output','Package':'p','Test':'TestA','Output':'    a_test.go:1: chatter\n'}`,
		`{'Action':'pass','Package':'p','Test':'TestA'}`,
		`{'Action':'output','Package':'p','Output':'PASS\n'}`,
		`{'Action':'output','Package':'p','Output':'ok  \tp\t0.1s\n'}`,
		`{'Action':'pass','Package':'p'}`,
	), "ok  \tp\t0.1s", "1 passed, 0 failed, 0 skipped", "servers: none")
}

func TestFailedTestsAreShownWithTheirOutput(t *testing.T) {
	t.Parallel()
	mustEqual(t, report(t,
		`{'Action':'run','Package':'p','Test':'TestA'}`,
		`{'Action':'run','Package':'p','Test':'TestB'}`,
		`{'Action':'output','Package':'p','Test':'TestB','Output':'    b_test.go:1: of no interest\n'}`,
		`{'Action':'output','Package':'p','Test':'TestA','Output':'    a_test.go:1: boo\n'}`,
		`{'Action':'output','Package':'p','Test':'TestA','Output':'--- FAIL: TestA (0.00s)\n'}`,
		`{'Action':'fail','Package':'p','Test':'TestA'}`,
		`{'Action':'pass','Package':'p','Test':'TestB'}`,
		`{'Action':'output','Package':'p','Output':'FAIL\n'}`,
		`{'Action':'output','Package':'p','Output':'FAIL\tp\t0.1s\n'}`,
		`{'Action':'fail','Package':'p'}`,
	), "--- FAIL: TestA (0.00s)", "    a_test.go:1: boo", "FAIL\tp\t0.1s", "1 passed, 1 failed, 0 skipped", "servers: none")
}

func TestPackageThatFailsWithoutATestIsAFailure(t *testing.T) {
	t.Parallel()
	mustEqual(t, report(t,
		`{'ImportPath':'p','Action':'build-output','Output':'p.go:1:1: syntax error\n'}`,
		`{'ImportPath':'p','Action':'build-fail'}`,
		`{'Action':'output','Package':'p','Output':'FAIL\tp [build failed]\n'}`,
		`{'Action':'fail','Package':'p','FailedBuild':'p'}`,
	), "p.go:1:1: syntax error", "FAIL\tp [build failed]", "0 passed, 1 failed, 0 skipped", "servers: none")
}

func TestTestThatNeverEndedIsAFailure(t *testing.T) {
	t.Parallel()
	mustEqual(t, report(t,
		`{'Action':'run','Package':'p','Test':'TestA'}`,
		`{'Action':'output','Package':'p','Test':'TestA','Output':'panic: ouch\n'}`,
		`{'Action':'fail','Package':'p'}`,
		`{'Action':'run','Package':'interrupted','Test':'TestB'}`,
	), "panic: ouch", "0 passed, 2 failed, 0 skipped", "servers: none")
}

func TestSkipsAreCountedByReason(t *testing.T) {
	t.Parallel()
	skip := func(test string) []string {
		return []string{
			`{'Action':'run','Package':'p','Test':'` + test + `'}`,
			`{'Action':'output','Package':'p','Test':'` + test + `','Output':'    s.go:12: no MySQL here\n'}`,
			`{'Action':'output','Package':'p','Test':'` + test + `','Output':'--- SKIP: x (0.00s)\n'}`,
			`{'Action':'skip','Package':'p','Test':'` + test + `'}`,
		}
	}
	lines := append(skip("TestA"), skip("TestB/sub")...)
	mustEqual(t, report(t, append(lines, `{'Action':'pass','Package':'p'}`)...),
		"skipped 2: no MySQL here", "0 passed, 0 failed, 2 skipped", "servers: none")
}

func TestServersOfAllPackagesAreMerged(t *testing.T) {
	t.Parallel()
	mustEqual(t, report(t,
		`{'Action':'output','Package':'p','Output':'servers: PostgreSQL none, MariaDB 10.11.19 (private)\n'}`,
		`{'Action':'output','Package':'q','Output':'servers: PostgreSQL 15.18 (private), MariaDB none\n'}`,
		`{'Action':'output','Package':'r','Output':'servers: PostgreSQL 15.18 (private), MariaDB none\n'}`,
		`{'Action':'pass','Package':'p'}`,
		`{'Action':'pass','Package':'q'}`,
		`{'Action':'pass','Package':'r'}`,
	), "0 passed, 0 failed, 0 skipped", "servers: PostgreSQL 15.18 (private), MariaDB 10.11.19 (private)")
}

func TestWhatIsNotJSONIsPassedOn(t *testing.T) {
	t.Parallel()
	mustEqual(t, report(t, "go: something\n"), "go: something", "0 passed, 0 failed, 0 skipped", "servers: none")
}
