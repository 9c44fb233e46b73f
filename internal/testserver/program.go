package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of a program that the test runs beside its servers, such as promtool. Where it is missing, the test
// is skipped, with a line that names the Debian package; with SQLBULKHEAD_REQUIRE_SERVERS=1 it fails.
func Program(tb testing.TB, name, debian string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		without(tb, fmt.Sprintf("no %s here: install the Debian package %s", name, debian))
	}
	return path
}

// without ends the test for what has to be here, or may be.
func without(tb testing.TB, line string) {
	tb.Helper()
	if os.Getenv(requireVariable) == "1" {
		tb.Fatal(line)
	}
	tb.Skip(line)
}
