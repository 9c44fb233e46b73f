package fakedb_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
)

// bench is what nearly every test needs: a server, a plain database/sql over it, and fake time.
type bench struct {
	*testing.T
	s   *fakedb.Server
	db  *sql.DB
	ctx context.Context
}

// inBubble runs f in a bubble with a fresh server. Afterwards nothing may be open or running on it.
func inBubble(t *testing.T, f func(b *bench), opts ...fakedb.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, opts...)
		f(b)
		b.end()
	})
}

func setup(t *testing.T, opts ...fakedb.Option) *bench {
	s := fakedb.New(opts...)
	return &bench{T: t, s: s, db: sql.OpenDB(s.Connector()), ctx: t.Context()}
}

func (b *bench) end() {
	b.Helper()
	b.nilError(b.db.Close())
	synctest.Wait()
	stats := b.s.Stats()
	equal(b.T, "connections left open", stats.Open, 0)
	equal(b.T, "statements left running", stats.Running, 0)
	equal(b.T, "connections closed", stats.Closed, stats.Dialed)
}

// blameless also fails on violations: plain database/sql commits none.
func (b *bench) blameless() {
	b.Helper()
	if v := b.s.Violations(); len(v) > 0 {
		b.Errorf("violations: %q", v)
	}
}

func (b *bench) violated(want ...string) {
	b.Helper()
	if got := b.s.Violations(); !slices.Equal(got, want) {
		b.Errorf("violations: got %q, want %q", got, want)
	}
}

func (b *bench) nilError(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) isError(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("got error %v, want %v", err, want)
	}
}

// exec returns the error of an Exec, and how long it took.
func (b *bench) exec(ctx context.Context, text string, args ...any) (time.Duration, error) {
	start := time.Now()
	_, err := b.db.ExecContext(ctx, text, args...)
	return time.Since(start), err
}

// ints reads a row set of one column of numbers to its end.
func ints(rows *sql.Rows) (list []int, err error) {
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			return list, err
		}
		list = append(list, n)
	}
	return list, rows.Err()
}

func (b *bench) query(text string, args ...any) ([]int, error) {
	rows, err := b.db.QueryContext(b.ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return ints(rows)
}

// one scans the only value of a row.
func one[V any](b *bench, text string, args ...any) (v V) {
	b.Helper()
	b.nilError(b.db.QueryRowContext(b.ctx, text, args...).Scan(&v))
	return v
}

func (b *bench) conn() *sql.Conn {
	b.Helper()
	c, err := b.db.Conn(b.ctx)
	b.nilError(err)
	return c
}

func equal[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func equalList[V comparable](t *testing.T, what string, got []V, want ...V) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// texts turns a log into lines.
func texts(calls []fakedb.Call) (list []string) {
	for _, c := range calls {
		list = append(list, c.String())
	}
	return list
}
