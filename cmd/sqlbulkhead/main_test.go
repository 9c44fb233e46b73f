package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }

// outcome is what a command line did.
type outcome struct {
	status         int
	stdout, stderr string
}

func execute(ctx context.Context, args ...string) outcome {
	var stdout, stderr strings.Builder
	status := run(ctx, args, &stdout, &stderr)
	return outcome{status, stdout.String(), stderr.String()}
}

// mustFail checks the exit status and that standard error is one line that
// says all of want.
func (o outcome) mustFail(t *testing.T, status int, want ...string) {
	t.Helper()
	if o.status != status {
		t.Errorf("exit status %d, want %d", o.status, status)
	}
	if strings.Count(o.stderr, "\n") != 1 || !strings.HasSuffix(o.stderr, "\n") {
		t.Errorf("standard error is not one line: %q", o.stderr)
	}
	for _, text := range want {
		if !strings.Contains(o.stderr, text) {
			t.Errorf("standard error does not say %q: %s", text, o.stderr)
		}
	}
	if o.stdout != "" {
		t.Errorf("standard output: %q", o.stdout)
	}
}

func TestCommandsAreListedOnRequestAndForWantOfOne(t *testing.T) {
	t.Parallel()
	asked, wanting := execute(t.Context(), "--help"), execute(t.Context())
	if asked.status != 0 || !strings.Contains(asked.stdout, "demo") || asked.stderr != "" {
		t.Errorf("asked: %+v", asked)
	}
	if wanting.status != 2 || wanting.stderr != asked.stdout || wanting.stdout != "" {
		t.Errorf("without a command: %+v", wanting)
	}
}

func TestUnknownCommandIsWrongUsage(t *testing.T) {
	t.Parallel()
	execute(t.Context(), "dmeo").mustFail(t, 2, `"dmeo"`, "sqlbulkhead help")
}

func TestHelpOfACommandHasTwoSpellings(t *testing.T) {
	t.Parallel()
	a, b := execute(t.Context(), "demo", "--help"), execute(t.Context(), "help", "demo")
	if a.status != 0 || a != b || a.stderr != "" || !strings.Contains(a.stdout, "--analysts") {
		t.Errorf("%+v\n%+v", a, b)
	}
}
