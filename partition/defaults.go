package partition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// standardPools is what the four pools start from: a start, not anyone's traffic.
var standardPools = map[workload.Name]PoolConfig{
	workload.OLTP:      {MaxOpenConns: 10, MaxWaiting: 20, AcquireTimeout: 100 * time.Millisecond, StatementTimeout: 5 * time.Second},
	workload.Reporting: {MaxOpenConns: 3, MaxWaiting: 3, AcquireTimeout: 50 * time.Millisecond, StatementTimeout: time.Minute},
	workload.Batch:     {MaxOpenConns: 2, MaxWaiting: 4, AcquireTimeout: time.Second, StatementTimeout: 15 * time.Minute},
	workload.Admin:     {MaxOpenConns: 2, MaxWaiting: 2, AcquireTimeout: 5 * time.Second, StatementTimeout: NoTimeout},
}

// commonDefaults is what every pool, standard or not, falls back to.
var commonDefaults = PoolConfig{
	AcquireTimeout:   100 * time.Millisecond,
	StatementTimeout: 30 * time.Second,
	DialTimeout:      5 * time.Second,
	ConnMaxLifetime:  30 * time.Minute,
	ConnMaxIdleTime:  5 * time.Minute,
}

// forever is as good as the largest duration, and can still be added to a time.
const forever = 100 * 365 * 24 * time.Hour

// maxPoolConns keeps sums of sizes from overflowing; no server has so many connections.
const maxPoolConns = 1_000_000

// maxDefaultWaiting bounds the default queue of a pool with another name.
const maxDefaultWaiting = 10

// resolve turns what was set per pool into effective configurations: validated,
// the budget shared out, every default in. A standard pool that exists and was
// not configured is in pools with the zero PoolConfig. ownServer tells the pools
// that have a connector of their own; one with a DSN has its own server anyway.
//
// In the result MaxIdleConns is the real number, never negative; MaxWaiting may
// be NoQueue, AcquireTimeout NoWait, StatementTimeout, ConnMaxLifetime and
// ConnMaxIdleTime NoTimeout; nothing else is negative. The error is the first
// problem in the order of the pools' names, so that it is the same every time.
func resolve(pools map[workload.Name]PoolConfig, budget int, ownServer func(workload.Name) bool) (map[workload.Name]PoolConfig, error) {
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		if err := validate(name, pools[name]); err != nil {
			return nil, err
		}
	}
	shares, err := share(pools, budget, ownServer)
	if err != nil {
		return nil, err
	}
	effective := make(map[workload.Name]PoolConfig, len(pools))
	for name, set := range pools {
		set.MaxOpenConns = max(set.MaxOpenConns, shares[name])
		effective[name] = fill(name, set)
	}
	return effective, nil
}

func validate(name workload.Name, set PoolConfig) error {
	if err := name.Validate(); err != nil {
		return fmt.Errorf("partition: pool %.60q: %w", string(name), err)
	}
	err := set.check()
	if err == nil && set.MaxOpenConns > maxPoolConns {
		err = fmt.Errorf("MaxOpenConns must be at most %d, got %d", maxPoolConns, set.MaxOpenConns)
	}
	if _, known := standardPools[name]; err == nil && !known && set.MaxOpenConns == 0 {
		err = errors.New("MaxOpenConns is required (only oltp, reporting, batch and admin have a default)")
	}
	if err != nil {
		return fmt.Errorf("partition: pool %q: %w", string(name), err)
	}
	return nil
}

// fill puts the defaults under what is set.
func fill(name workload.Name, set PoolConfig) PoolConfig {
	c := commonDefaults.merge(standardPools[name]).merge(set)
	for _, f := range poolFields {
		if d, ok := f.at(&c).(*time.Duration); ok {
			*d = min(*d, forever)
		}
	}
	c.LeakAfter, c.MaxHold = max(c.LeakAfter, 0), max(c.MaxHold, 0)
	if c.MaxWaiting == 0 {
		c.MaxWaiting = min(c.MaxOpenConns, maxDefaultWaiting)
	}
	switch {
	case c.MaxIdleConns < 0:
		c.MaxIdleConns = 0
	case c.MaxIdleConns == 0 || c.MaxIdleConns > c.MaxOpenConns:
		c.MaxIdleConns = c.MaxOpenConns
	}
	return c
}
