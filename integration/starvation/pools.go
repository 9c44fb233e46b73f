package starvation

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

const (
	total = 20 // connections, in both arrangements

	// grace is how long after the statement timeout the client's guard fires.
	grace = 500 * time.Millisecond
	// slack is what a busy machine may add to a time that is only bounded.
	slack = time.Second
)

// pools are the partitions. MaxOpenConns adds up to total.
type pools map[workload.Name]partition.PoolConfig

// standard leaves the statement timeouts out of days that are about something
// else. More logins may wait, and longer, than by default: a machine that stands
// still for a moment is no starvation.
var standard = pools{
	workload.OLTP:      {MaxOpenConns: 15, MaxWaiting: 50, AcquireTimeout: 300 * time.Millisecond, StatementTimeout: time.Second},
	workload.Reporting: {MaxOpenConns: 3, AcquireTimeout: 50 * time.Millisecond, StatementTimeout: 30 * time.Second},
	workload.Batch:     {MaxOpenConns: 2, AcquireTimeout: 500 * time.Millisecond, StatementTimeout: 30 * time.Second},
}

// with returns p with another configuration of one pool.
func (p pools) with(name workload.Name, change func(*partition.PoolConfig)) pools {
	changed := make(pools, len(p))
	for n, c := range p {
		if n == name {
			change(&c)
		}
		changed[n] = c
	}
	return changed
}

// longest is how long a call in this pool may take on a server that hangs.
func (p pools) longest(name workload.Name) time.Duration {
	return p[name].AcquireTimeout + p[name].StatementTimeout + grace + slack
}

// arrangement is a way to open the handle.
type arrangement struct {
	name string
	open func(s *scene) (*sql.DB, error)
}

var (
	shared      = arrangement{fmt.Sprintf("one pool of %d", total), openShared}
	partitioned = arrangement{"partitions 15+3+2", openPartitions}
)

// openShared opens one pool for everything. Where reporting could have a server
// of its own, everything is on that.
func openShared(s *scene) (*sql.DB, error) {
	st := s.stage
	if s.other != nil {
		st = s.other
	}
	db, err := sql.Open(st.server.Driver(), st.dsn)
	if err != nil {
		return nil, errBadDSN
	}
	db.SetMaxOpenConns(total)
	db.SetMaxIdleConns(total) // or it would dial all the time
	return db, nil
}

func openPartitions(s *scene) (*sql.DB, error) {
	p := s.pools
	if s.other != nil {
		p = p.with(workload.Reporting, func(c *partition.PoolConfig) { c.DSN = s.other.dsn })
	}
	return partition.Open(s.stage.server.Driver(), s.stage.dsn,
		partition.WithConfig(partition.Config{Pools: p}),
		partition.WithBudget(total),
		partition.WithoutPool(workload.Admin),
		partition.WithLogger(slog.New(slog.DiscardHandler)))
}

func in(ctx context.Context, name workload.Name) context.Context { return workload.With(ctx, name) }
