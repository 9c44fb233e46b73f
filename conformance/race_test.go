//go:build race

package conformance_test

import "testing"

// skipUnderRace leaves real servers to the run without the race detector, which make conformance is: their twins take
// minutes, and what could race is the same on the fake.
func skipUnderRace(t *testing.T) {
	t.Helper()
	t.Skip("make conformance runs it, without the race detector")
}
