package partition

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// share returns how many connections each pool without an explicit size gets of
// the budget: what the explicit sizes leave of it, in the ratio of the defaults.
// Pools with a server of their own neither count nor share. A budget of 0 is
// none, and shares nothing.
func share(pools map[workload.Name]PoolConfig, budget int, ownServer func(workload.Name) bool) (map[workload.Name]int, error) {
	switch {
	case budget < 0:
		return nil, fmt.Errorf("partition: the budget must be positive, got %d", budget)
	case budget > maxPoolConns:
		return nil, fmt.Errorf("partition: the budget must be at most %d, got %d", maxPoolConns, budget)
	case budget == 0:
		return nil, nil
	}
	explicit, open := onSharedServer(pools, ownServer)
	left := budget - sumOf(pools, explicit)
	if left < 0 {
		return nil, fmt.Errorf("partition: the explicit MaxOpenConns of %s sum to %d, over the budget of %d",
			joinNames(explicit), sumOf(pools, explicit), budget)
	}
	if len(open) == 0 {
		return nil, nil
	}
	if left < len(open) {
		return nil, fmt.Errorf("partition: the budget of %d leaves %d for the pools without an explicit MaxOpenConns (%s), which need at least 1 each",
			budget, left, joinNames(open))
	}
	return apportion(left, open), nil
}

// onSharedServer splits the pools that count against the budget into those with
// an explicit size and those without, each sorted by name.
func onSharedServer(pools map[workload.Name]PoolConfig, ownServer func(workload.Name) bool) (explicit, open []workload.Name) {
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		c := pools[name]
		switch {
		case c.DSN != "" || ownServer != nil && ownServer(name):
		case c.MaxOpenConns == 0:
			open = append(open, name)
		default:
			explicit = append(explicit, name)
		}
	}
	return explicit, open
}

// sumOf stops at the largest int instead of wrapping around to a number that
// would fit the budget.
func sumOf(pools map[workload.Name]PoolConfig, names []workload.Name) int {
	total := 0
	for _, name := range names {
		n := pools[name].MaxOpenConns
		total = min(total, math.MaxInt-n) + n
	}
	return total
}

// apportion shares total among standard pools in the ratio of their defaults,
// by largest remainder, at least one each. The shares sum exactly to total,
// which is at least the number of pools, of which there is at least one.
func apportion(total int, names []workload.Name) map[workload.Name]int {
	shares := make(map[workload.Name]int, len(names))
	left, rest, weights := total, slices.Clone(names), 0
	for _, name := range rest {
		weights += weight(name)
	}
	// Whoever is due less than one gets one, which lowers what the others are
	// due; the smallest first, so that one pass suffices.
	slices.SortStableFunc(rest, func(a, b workload.Name) int { return cmp.Compare(weight(a), weight(b)) })
	for len(rest) > 0 && quotient(left, weight(rest[0]), weights) < 1 {
		shares[rest[0]] = 1
		left, weights, rest = left-1, weights-weight(rest[0]), rest[1:]
	}
	over := left
	for _, name := range rest {
		shares[name] = quotient(left, weight(name), weights)
		over -= shares[name]
	}
	// One more for those that rounding down cost most; on a tie the larger pool.
	slices.SortStableFunc(rest, func(a, b workload.Name) int {
		return cmp.Or(cmp.Compare(remainder(left, weight(b), weights), remainder(left, weight(a), weights)),
			cmp.Compare(weight(b), weight(a)))
	})
	for _, name := range rest[:over] {
		shares[name]++
	}
	return shares
}

func weight(name workload.Name) int { return standardPools[name].MaxOpenConns }

// quotient and remainder divide n·w by total in parts, since the product could
// overflow.
func quotient(n, w, total int) int  { return n/total*w + n%total*w/total }
func remainder(n, w, total int) int { return n % total * w % total }

// joinNames joins names for an error.
func joinNames(names []workload.Name) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}
