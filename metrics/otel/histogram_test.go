package otel

import (
	"slices"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

func TestPoolsHaveTheBounds(t *testing.T) {
	t.Parallel()
	for _, d := range slices.Concat(waitBounds.limits, useBounds.limits) {
		if got := partition.HistogramBound(d); got != d {
			t.Errorf("instead of %v they have %v", d, got)
		}
	}
}
