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

const metrics = `
BenchmarkExecWithOTel/plain-2     1000  300.0 ns/op  32 B/op  1 allocs/op
BenchmarkExecWithOTel/producer-2  1000  700.0 ns/op  32 B/op  1 allocs/op
BenchmarkExecWithOTel/sdk-2       1000  1300.0 ns/op  32 B/op  1 allocs/op
BenchmarkScrape/plain-2           100  700000 ns/op  452196 B/op  5724 allocs/op
BenchmarkScrape/partitioned-2     100  5000000 ns/op  2001567 B/op  13499 allocs/op
PASS
`

// A machine that is half as fast may take twice as long; there is no bound for what is printed beside.
func TestBoundsGoWithTheMachine(t *testing.T) {
	r := results{}
	if err := r.add(strings.NewReader(metrics)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"BenchmarkExecWithOTel/producer": "≤ 390 ns × 2.00, ≤ 3 allocs: holds",
		"BenchmarkExecWithOTel/sdk":      "",
		"BenchmarkScrape/partitioned":    "≤ 4250000 ns × 1.00: DOES NOT HOLD",
	} {
		if text, holds := r.verdict(name); text != want || holds == strings.Contains(want, "NOT") {
			t.Errorf("%s: %q, %v", name, text, holds)
		}
	}
}
