//go:build !race

package conformance_test

import "testing"

func skipUnderRace(*testing.T) {}
