package main

import (
	"strings"
	"testing"
)

const sample = `goos: linux
BenchmarkExec/plain-2        1000  200.0 ns/op  32 B/op  1 allocs/op
BenchmarkExec/partitioned-2  1000  600.0 ns/op  32 B/op  1 allocs/op
BenchmarkExec/partitioned-2  1000  450.0 ns/op  48 B/op  2 allocs/op
BenchmarkWait/partitioned-2     1  999 ns/op  1.0 p50-ms  3.0 p99.9-ms  3.0 p99.9/p50
PASS
`

func TestBestOfTheRunsIsComparedWithPlain(t *testing.T) {
	r := results{}
	if err := r.add(strings.NewReader(sample)); err != nil {
		t.Fatal(err)
	}
	if got, want := r.difference("BenchmarkExec/partitioned"), "+250 ns, +0 allocs"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if text, holds := r.verdict("BenchmarkExec/partitioned"); !holds {
		t.Error(text)
	}
	if text, holds := r.verdict("BenchmarkWait/partitioned"); holds {
		t.Error(text)
	}
	var out strings.Builder
	if ok, err := r.print(&out); ok || err != nil || !strings.Contains(out.String(), "DOES NOT HOLD") {
		t.Errorf("%v, %v\n%s", ok, err, out.String())
	}
}
