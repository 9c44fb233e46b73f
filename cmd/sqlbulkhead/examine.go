package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// findings is what check reports.
type findings struct {
	sessions []*session
	servers  []*dbServer
	notes    []string
	breaks   []string // why the exit status is 1
}

func (f *findings) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

func (f *findings) broken(format string, args ...any) {
	f.breaks = append(f.breaks, fmt.Sprintf(format, args...))
}

// examine opens every pool and asks. Its error is that nothing could be asked at
// all.
func (c *checkup) examine(ctx context.Context) (*findings, error) {
	dials := &dials{last: map[workload.Name]partition.ConnEvent{}}
	db, reg, err := c.open(partition.WithObserver(dials), partition.WithLogger(slog.New(dials)))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	warm := reg.Warm(ctx)
	if err := dials.first(reg.Pools()); warm != nil && err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	f := &findings{}
	c.noteMode(f)
	for _, pool := range reg.Pools() {
		s, err := c.session(ctx, db, pool, dials)
		if err != nil {
			f.broken("pool %q: %v", pool.Name(), c.explain(err))
			continue
		}
		defer s.conn.Close()
		f.sessions = append(f.sessions, s)
	}
	for _, s := range f.sessions {
		f.judgeTimeout(s)
		f.judgeDial(s, dials.of(s.pool).Took)
	}
	c.judgeServers(ctx, f)
	for _, warning := range dials.warned() {
		f.note("%v", c.explain(errors.New(warning)))
	}
	return f, nil
}

func (c *checkup) noteMode(f *findings) {
	if c.config.Mode == partition.Observe {
		f.note(`the configuration says "mode": "observe", and was checked as it will be in "enforce". Until then no statement timeout ` +
			`of a pool's own is in force, and all work on a server shares one pool of the budget's size`)
	}
}

// session takes a connection of a pool, and asks it what it is. The connection
// is kept, so that the pools' own are all there when the server counts.
func (c *checkup) session(ctx context.Context, db *sql.DB, pool *partition.Pool, dials *dials) (*session, error) {
	if err := dials.of(pool).Err; err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	conn, err := persist(workload.With(ctx, pool.Name()), db)
	switch {
	case errors.Is(err, partition.ErrRejected): // to the end: the pool keeps nothing idle, and its dials are too slow
		return nil, err
	case err != nil:
		return nil, inTime(ctx, err)
	}
	s := &session{pool: pool, conn: conn}
	if err := s.identify(ctx, c.driver); err != nil {
		conn.Close()
		return nil, inTime(ctx, err)
	}
	return s, nil
}

// inTime says what it means that check's own time has run out.
func inTime(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", checkTimeout)
	}
	return err
}

// judgeDial compares the dial, which the first caller of a cold pool waits for,
// with how long it is ready to wait.
func (f *findings) judgeDial(s *session, took time.Duration) {
	if patience := s.pool.Config().AcquireTimeout; patience > 0 && took > patience {
		f.note("pool %q: its connection took %s to make, and acquire_timeout is %s: the first callers of a cold pool are rejected",
			s.pool.Name(), latency(took), short(patience))
	}
}

// dials is what became of the dials, and what the library logged meanwhile.
type dials struct {
	// mu guards the fields below: the pools dial side by side, and a dial goes on
	// when nobody waits for it any more. It is held for moments.
	mu       sync.Mutex
	last     map[workload.Name]partition.ConnEvent
	warnings []string
}

var (
	_ partition.ConnObserver = (*dials)(nil)
	_ slog.Handler           = (*dials)(nil)
)

// ConnOpened remembers the last attempt of each pool.
func (d *dials) ConnOpened(e partition.ConnEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last[e.Pool] = e
}

// ConnClosed is of no interest.
func (d *dials) ConnClosed(partition.ConnEvent) {}

func (d *dials) of(pool *partition.Pool) partition.ConnEvent {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last[pool.Name()]
}

func (d *dials) warned() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.warnings)
}

// first returns the error of the first pool if none could connect.
func (d *dials) first(pools []*partition.Pool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := fmt.Errorf("no answer within %v", checkTimeout)
	for _, pool := range slices.Backward(pools) {
		e, ended := d.last[pool.Name()]
		switch {
		case ended && e.Err == nil:
			return nil
		case ended:
			first = e.Err
		}
	}
	return first
}

// Enabled is for warnings: what the library could not do as asked.
func (d *dials) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle makes one line of a warning. The pools say the same one after the other.
func (d *dials) Handle(_ context.Context, r slog.Record) error {
	line := []string{r.Message}
	r.Attrs(func(a slog.Attr) bool {
		line = append(line, a.String())
		return true
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if text := strings.Join(line, " "); !slices.Contains(d.warnings, text) {
		d.warnings = append(d.warnings, text)
	}
	return nil
}

// WithAttrs drops what is the same for every line.
func (d *dials) WithAttrs([]slog.Attr) slog.Handler { return d }

// WithGroup drops it too.
func (d *dials) WithGroup(string) slog.Handler { return d }
