package main

import (
	"flag"
	"strings"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestSizeIsLittlesLawWithTheReasons(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"--rate 300 --p99 20ms": {"max_open_conns: 9\n", "300 calls/s × 1 attempt = 300 acquires/s",
			"× 20ms held = 6 in use", "× 1.5 headroom for bursts = 9, in whole connections 9", "more than 45 others"},
		"--rate 300 --p99 20ms --attempts 3":                {"max_open_conns: 27\n", "300 calls/s × 3 attempts = 900 acquires/s"},
		"--rate 0.1 --p99 20s --headroom 1":                 {"max_open_conns: 2\n", "= 2 in use", "more than 0 others"},
		"--rate=0.1 --p99=1ms --headroom=1":                 {"max_open_conns: 1\n", "= 0.0001 in use"},
		"--rate 500 --p99 50ms --headroom 1.6":              {"max_open_conns: 40\n"},
		"--rate 10 --p99 1m30s --headroom 1.2 --attempts 1": {"max_open_conns: 1080\n", "× 1m30s held = 900"},
	} {
		o := execute(t.Context(), append([]string{"size"}, strings.Fields(args)...)...)
		if o.status != 0 || o.stderr != "" {
			t.Errorf("%s: %+v", args, o)
		}
		for _, text := range want {
			if !strings.Contains(o.stdout, text) {
				t.Errorf("%s does not say %q:\n%s", args, text, o.stdout)
			}
		}
	}
}

func TestSizeRefusesWhatHasNoAnswer(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                       "--rate is required",
		"--rate 300":                             "--p99 is required",
		"--p99 20ms":                             "--rate is required",
		"--rate 0 --p99 20ms":                    "from 0.0001 to 1000000",
		"--rate -1 --p99 20ms":                   "from 0.0001 to 1000000",
		"--rate NaN --p99 20ms":                  "from 0.0001 to 1000000",
		"--rate Inf --p99 20ms":                  "from 0.0001 to 1000000",
		"--rate 300 --p99 20":                    "with its unit",
		"--rate 300 --p99 0s":                    "from 1µs to 24h",
		"--rate 300 --p99 20ms --headroom 0.5":   "from 1 to 100",
		"--rate 300 --p99 20ms --attempts 0":     "from 1 to 100",
		"--rate 300 --p99 20ms --attempts three": "from 1 to 100",
		"--rate 1e6 --p99 24h":                   "more than 1000000 connections",
		"--rate 1e6 --p99 1001ms --headroom 1":   "more than 1000000 connections",
		"300 20ms":                               "unexpected argument",
	} {
		o := execute(t.Context(), append([]string{"size"}, strings.Fields(args)...)...)
		o.mustFail(t, 2, want, "sqlbulkhead size --help")
	}
}

func TestLargestSizeIsOneThatAPoolCanHave(t *testing.T) {
	t.Parallel()
	o := execute(t.Context(), "size", "--rate", "1e6", "--p99", "1s", "--headroom", "1")
	if !strings.HasPrefix(o.stdout, "max_open_conns: 1000000\n") {
		t.Errorf("%+v", o)
	}
	for size, refused := range map[int]bool{maxOpenConns: false, maxOpenConns + 1: true} {
		db, err := partition.Open("sqlite", "file:unused", partition.WithPool(workload.OLTP, partition.PoolConfig{MaxOpenConns: size}))
		if (err != nil) != refused {
			t.Errorf("%d: %v", size, err)
		}
		if err == nil {
			db.Close()
		}
	}
}

func TestFlagsOfSizeAndCheckAreExplained(t *testing.T) {
	t.Parallel()
	for command, fs := range map[string]*flag.FlagSet{
		"size":  new(demand).flagSet(),
		"check": new(checkup).flagSet(),
	} {
		help := execute(t.Context(), command, "--help")
		if help.status != 0 || help.stderr != "" || !strings.Contains(help.stdout, "Examples:\n  sqlbulkhead "+command) {
			t.Errorf("%+v", help)
		}
		fs.VisitAll(func(f *flag.Flag) {
			if !strings.Contains(help.stdout, "\n  --"+f.Name+" ") {
				t.Errorf("%s --%s is not in the help", command, f.Name)
			}
		})
		for _, line := range strings.Split(help.stdout, "\n") {
			if len(line) > 96 {
				t.Errorf("long line: %s", line)
			}
		}
	}
}
