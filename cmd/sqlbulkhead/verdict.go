package main

import (
	"fmt"
	"strings"
)

// sufferFactor is how much the p99 of login must grow to count as suffering,
// where no login fails. Less may be the machine.
const sufferFactor = 5

// verdict says in one sentence what the table shows, also where that is not
// what the demo is meant to show.
func verdict(alone, shared, parts result) string {
	said := []string{sharedVerdict(alone, shared), partitionsVerdict(alone, parts)}
	if shared.reportsOK+parts.reportsOK > 0 {
		said = append(said, fmt.Sprintf("the reports paid the price, with %d done instead of %d and %d attempts turned away",
			parts.reportsOK, shared.reportsOK, parts.reportsRejected))
	}
	return strings.Join(said, "; ") + "."
}

// suffers reports whether the one pool did.
func suffers(alone, shared result) bool {
	return shared.loginsFailed > 0 || shared.p99 > sufferFactor*alone.p99
}

func sharedVerdict(alone, shared result) string {
	switch {
	case shared.loginsFailed > 0:
		return fmt.Sprintf("In the one pool %d of %d logins failed behind the reports", shared.loginsFailed, shared.attempts())
	case suffers(alone, shared):
		return fmt.Sprintf("In the one pool no login failed, but their p99 went from %s to %s behind the reports",
			latency(alone.p99), latency(shared.p99))
	}
	return fmt.Sprintf("The one pool did not suffer here (no login failed, p99 %s): the reports must hold all of its connections to show a difference",
		latency(shared.p99))
}

func partitionsVerdict(alone, parts result) string {
	if parts.loginsFailed > 0 {
		return fmt.Sprintf("the partitions did not serve every login either: %d of %d failed", parts.loginsFailed, parts.attempts())
	}
	return fmt.Sprintf("in partitions of the same total size every login was served, with a p99 of %s (%s without reports)",
		latency(parts.p99), latency(alone.p99))
}
