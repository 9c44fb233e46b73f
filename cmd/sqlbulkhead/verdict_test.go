package main

import (
	"strings"
	"testing"
	"time"
)

func TestVerdictTellsTheDifferenceAndItsPrice(t *testing.T) {
	t.Parallel()
	const want = "In the one pool 620 of 1000 logins failed behind the reports; in partitions of the same total size " +
		"every login was served, with a p99 of 0.51ms (0.48ms without reports); the reports paid the price, with 12 done " +
		"instead of 80 and 467 attempts turned away."
	if got := verdict(alone, shared, parts); got != want {
		t.Errorf("got %s", got)
	}
}

func TestVerdictIsHonest(t *testing.T) {
	t.Parallel()
	slow, unharmed, leaky := shared, parts, parts
	slow.loginsOK, slow.loginsFailed, slow.p99 = 1000, 0, 400*time.Millisecond
	leaky.loginsOK, leaky.loginsFailed = 997, 3
	for name, c := range map[string]struct {
		shared, parts result
		want          string
	}{
		"slow but served":     {slow, parts, "no login failed, but their p99 went from 0.48ms to 400ms"},
		"nothing to see":      {unharmed, parts, "The one pool did not suffer here"},
		"partitions fail too": {shared, leaky, "the partitions did not serve every login either: 3 of 1000 failed"},
	} {
		got := verdict(alone, c.shared, c.parts)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
		if name == "partitions fail too" && strings.Contains(got, "every login was served") {
			t.Error(got)
		}
	}
}

func TestVerdictWithoutAnyReportNamesNoPrice(t *testing.T) {
	t.Parallel()
	if got := verdict(alone, alone, alone); strings.Contains(got, "price") {
		t.Error(got)
	}
}
