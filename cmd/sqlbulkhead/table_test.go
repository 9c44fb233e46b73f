package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

var (
	alone = result{name: "no reports", counts: counts{loginsOK: 500},
		p50: 210 * time.Microsecond, p99: 480 * time.Microsecond, max: 1234 * time.Microsecond}
	shared = result{name: "one pool of 20", counts: counts{loginsOK: 380, loginsFailed: 620, reportsOK: 80},
		p50: time.Second, p99: 1001 * time.Millisecond, max: 1016 * time.Millisecond}
	parts = result{name: "partitions 17+3", counts: counts{loginsOK: 1000, reportsOK: 12, reportsRejected: 467},
		p50: 220 * time.Microsecond, p99: 510 * time.Microsecond, max: 12 * time.Millisecond}
)

func TestTable(t *testing.T) {
	t.Parallel()
	const want = `
arrangement      logins ok  failed     p50     p99     max  reports ok  rejected
no reports             500       0  0.21ms  0.48ms  1.23ms           0         0
one pool of 20         380     620   1.00s   1.00s   1.02s          80         0
partitions 17+3       1000       0  0.22ms  0.51ms    12ms          12       467
`
	var got strings.Builder
	printTable(&got, []result{alone, shared, parts}, "")
	if got.String() != want[1:] {
		t.Errorf("got\n%s", got.String())
	}
}

func TestErrorsOfAnotherKindStandBelowTheTableWithoutPassword(t *testing.T) {
	t.Parallel()
	r := alone
	r.loginsBroken, r.firstLoginErr = 3, errors.New("cannot speak\n\tto u:s3cr3t@h")
	r.reportsBroken, r.firstReportErr = 1, errors.New("out of paper")
	var got strings.Builder
	printTable(&got, []result{r}, "postgres://u:s3cr3t@h/d")
	_, below, _ := strings.Cut(got.String(), "1.23ms           0         0\n")
	const want = `no reports: 3 logins ended in another error, the first: cannot speak to u:xxxxx@h
no reports: 1 reports ended in another error, the first: out of paper
`
	if below != want {
		t.Errorf("got\n%s", got.String())
	}
}

func TestLatencyHasThreeDigitsOrSo(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0.00ms", 9994 * time.Microsecond: "9.99ms", 9996 * time.Microsecond: "10ms",
		999 * time.Millisecond: "999ms", 999_500 * time.Microsecond: "1.00s", 61 * time.Second: "61.00s",
	} {
		if got := latency(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
