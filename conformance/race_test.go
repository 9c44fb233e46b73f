//go:build race

package conformance_test

import "testing"

// skipUnderRace leaves the long twins to the run without the race detector, which make conformance is: they take minutes,
// and what could race is the same in the short ones.
func skipUnderRace(t *testing.T) {
	t.Helper()
	t.Skip("make conformance runs it without the race detector")
}
