package main

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestSecretsAreWhatTheLibraryHides(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string][]string{
		"postgres://u:s3cr3t@h/d":                 {"s3cr3t"},
		"postgres://u:123/abc@h/d":                {"123/abc"},
		"postgres://u@h/d":                        nil,
		"u:p@ss:w@tcp(h:1)/d":                     {"p@ss:w"},
		"host=h user=u password=s3cr3t dbname=db": {"s3cr3t"},
		"file:/tmp/x.sqlite":                      nil,
		"postgres://u:a@h/d?sslpassword=b":        {"a", "b"},
	} {
		if got := secrets(dsn); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dsn, got, want)
		}
	}
}

func TestExplanationIsOneLineWithoutPassword(t *testing.T) {
	t.Parallel()
	const dsn = "postgres://u:123/s3cr3t@h/d"
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for text, want := range map[error]string{
		errors.New("partition: no\n\tidea"):                                    "no idea",
		errors.New("cannot connect to u:123, database s3cr3t@h/d"):             "cannot connect to u:xxxxx, database xxxxx@h/d",
		errors.Join(errors.New("failed to connect to `user=u`:\n"), refused):   "dial tcp: connection refused",
		errors.New("cannot connect: failed to connect to `user=u`: no reason"): "cannot connect: failed to connect to `user=u`: no reason",
	} {
		if got := explain(text, dsn).Error(); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if explain(nil, dsn) != nil {
		t.Error("an error out of nothing")
	}
}

func TestPercentEncodedPasswordIsHiddenInBothSpellings(t *testing.T) {
	t.Parallel()
	got := mask("p%40ssword and p@ssword", "postgres://u:p%40ssword@h/d")
	if strings.Contains(got, "ssword") {
		t.Error(got)
	}
}
