package partition_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

const ms = time.Millisecond

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// rig is a fake server and a partitioned handle on it.
type rig struct {
	*testing.T
	server *fakedb.Server
	db     *sql.DB
	reg    *partition.Registry

	tolerates string // violations with this in them (or that, after a |) are what the test is about
}

// setup opens a handle on s. When the test ends it is closed, and nothing may be left over: no permit, no connection,
// and no complaint of the fake about how it was used.
func setup(t *testing.T, s *fakedb.Server, opts ...partition.Option) *rig {
	t.Helper()
	opts = append([]partition.Option{partition.WithLogger(quiet)}, opts...)
	db, err := partition.OpenDB(s.Connector(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	reg, ok := partition.RegistryOf(db)
	if !ok {
		t.Fatal("no registry behind the handle")
	}
	r := &rig{T: t, server: s, db: db, reg: reg, tolerates: "\x00"}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		for _, v := range s.Violations() {
			if !slices.ContainsFunc(strings.Split(r.tolerates, "|"), func(part string) bool { return contains(v, part) }) {
				t.Errorf("violation: %s", v)
			}
		}
	})
	return r
}

func (r *rig) pool(name workload.Name) *partition.Pool {
	r.Helper()
	p, ok := r.reg.Pool(name)
	if !ok {
		r.Fatalf("no pool %q", name)
	}
	return p
}

func (r *rig) stats(name workload.Name) partition.Stats { return r.pool(name).Stats() }

// idle fails the test unless every permit is back.
func (r *rig) idle() {
	r.Helper()
	for _, p := range r.reg.Pools() {
		if s := p.Stats(); s.InUse != 0 || s.Waiting != 0 {
			r.Errorf("pool %s: in use %d, waiting %d", p.Name(), s.InUse, s.Waiting)
		}
	}
}

// take takes n connections of a pool and returns a function that gives them back.
func (r *rig) take(name workload.Name, n int) (giveBack func()) {
	r.Helper()
	conns := make([]*sql.Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = r.db.Conn(in(name)); err != nil {
			r.Fatal(err)
		}
	}
	return func() {
		for _, c := range conns {
			c.Close()
		}
	}
}

// fill opens n idle connections in a pool.
func (r *rig) fill(name workload.Name, n int) {
	r.Helper()
	r.take(name, n)()
}

func (r *rig) mustExec(ctx context.Context, text string) {
	r.Helper()
	if _, err := r.db.ExecContext(ctx, text); err != nil {
		r.Fatalf("%s: %v", text, err)
	}
}

func (r *rig) mustPrepare(ctx context.Context, text string) *sql.Stmt {
	r.Helper()
	stmt, err := r.db.PrepareContext(ctx, text)
	if err != nil {
		r.Fatalf("%s: %v", text, err)
	}
	return stmt
}

// in is a context tagged with a workload.
func in(name workload.Name) context.Context { return workload.With(context.Background(), name) }

var (
	oltp      = in(workload.OLTP)
	reporting = in(workload.Reporting)
)

func size(name workload.Name, n int) partition.Option {
	return partition.WithPool(name, partition.PoolConfig{MaxOpenConns: n})
}

// rejection is the AcquireError in err.
func rejection(t *testing.T, err error) *partition.AcquireError {
	t.Helper()
	var e *partition.AcquireError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *AcquireError", err)
	}
	return e
}

// entryPoints are all ways in which database/sql takes a connection out of a handle.
var entryPoints = []struct {
	name string
	call func(ctx context.Context, db *sql.DB) error
}{
	{"Exec", func(ctx context.Context, db *sql.DB) error { _, err := db.ExecContext(ctx, "ok"); return err }},
	{"Query", func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "id")
		if err == nil {
			err = rows.Close()
		}
		return err
	}},
	{"QueryRow", func(ctx context.Context, db *sql.DB) error {
		var id int
		return db.QueryRowContext(ctx, "id").Scan(&id)
	}},
	{"Prepare", func(ctx context.Context, db *sql.DB) error {
		stmt, err := db.PrepareContext(ctx, "ok")
		if err == nil {
			err = stmt.Close()
		}
		return err
	}},
	{"BeginTx", func(ctx context.Context, db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err == nil {
			err = tx.Rollback()
		}
		return err
	}},
	{"Conn", func(ctx context.Context, db *sql.DB) error {
		conn, err := db.Conn(ctx)
		if err == nil {
			err = conn.Close()
		}
		return err
	}},
	{"Ping", func(ctx context.Context, db *sql.DB) error { return db.PingContext(ctx) }},
}

func connIDs(calls []fakedb.Call) (ids []int) {
	for _, c := range calls {
		if !slices.Contains(ids, c.Conn) {
			ids = append(ids, c.Conn)
		}
	}
	return ids
}

func contains(text, part string) bool { return strings.Contains(text, part) }
