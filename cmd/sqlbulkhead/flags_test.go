package main

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"
)

func TestEveryFlagIsExplainedWithItsDefault(t *testing.T) {
	t.Parallel()
	help := execute(t.Context(), "demo", "--help").stdout
	s := defaults
	s.flagSet().VisitAll(func(f *flag.Flag) {
		_, after, ok := strings.Cut(help, "\n  --"+f.Name+" ")
		if !ok {
			t.Errorf("--%s is not in the help", f.Name)
			return
		}
		text, _, _ := strings.Cut(after, "\n  --")
		if f.DefValue != "" && !strings.Contains(text, "(default "+f.DefValue+")") {
			t.Errorf("--%s does not tell its default %s: %s", f.Name, f.DefValue, text)
		}
	})
	for _, line := range strings.Split(help, "\n") {
		if len(line) > 96 {
			t.Errorf("long line: %s", line)
		}
	}
}

func TestFlagsSetWhatTheySay(t *testing.T) {
	t.Parallel()
	got, err := parseFlags([]string{"--driver", "pgx", "--dsn=postgres://h/d", "--duration", "1m", "--logins=7",
		"--analysts", "0", "--hold", "30s", "--connections", "9", "-reporting", "8", "--report", "x.html"}, io.Discard)
	want := settings{"pgx", "postgres://h/d", time.Minute, 7, 0, 30 * time.Second, 9, 8, "x.html"}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := parseFlags(nil, io.Discard); err != nil || got != defaults {
		t.Errorf("without flags: %+v, %v", got, err)
	}
}

func TestFlagOutOfBoundsIsNamedWithValueAndBound(t *testing.T) {
	t.Parallel()
	for flag, c := range map[string]struct{ value, bound string }{
		"logins":      {"0", "from 1 to 10000"},
		"analysts":    {"-1", "from 0 to 1000"},
		"connections": {"many", "from 2 to 1000"},
		"reporting":   {"20", "from 1 to 19"},
		"duration":    {"10", "from 100ms to 1h"},
		"hold":        {"31s", "from 10ms to 30s"},
		"report":      {"2s", "ends in .html"},
	} {
		o := execute(t.Context(), "demo", "--"+flag, c.value)
		o.mustFail(t, 2, "flag --"+flag+":", `"`+c.value+`"`, c.bound, "sqlbulkhead demo --help")
	}
}

func TestWrongUsageHasAHint(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--no-such"}, {"extra"}, {"--logins"}, {"--driver", "pgx"}, {"--driver", "mysql", "--dsn", ""},
	} {
		o := execute(t.Context(), append([]string{"demo"}, args...)...)
		o.mustFail(t, 2, "sqlbulkhead demo --help")
	}
}

func TestUnknownDriverIsOneLineWithTheKnownOnes(t *testing.T) {
	t.Parallel()
	o := execute(t.Context(), "demo", "--driver", "oracle", "--dsn", "u/s3cr3t@h")
	o.mustFail(t, 1, `"oracle"`, "sqlite", "pgx", "postgres", "mysql")
	if strings.Contains(o.stderr, "s3cr3t") {
		t.Error(o.stderr)
	}
}
