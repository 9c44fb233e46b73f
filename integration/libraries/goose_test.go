package libraries

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func (s server) goose(tb testing.TB, db *sql.DB, lockID int64, migrations ...*goose.Migration) *goose.Provider {
	tb.Helper()
	dialect := goose.DialectMySQL
	opts := []goose.ProviderOption{goose.WithGoMigrations(migrations...)}
	if s.driver == "pgx" { // goose has a session lock for PostgreSQL alone
		dialect = goose.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(lockID), lock.WithLockTimeout(1, 60))
		if err != nil {
			tb.Fatal(err)
		}
		opts = append(opts, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(dialect, db, fstest.MapFS{
		"1_table.sql": {Data: []byte("-- +goose Up\n" + s.proof() + ";\n" + s.prove(1, "") + ";\n-- +goose Down\nDROP TABLE proof;\n")},
		"2_plain.sql": {Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\n" + s.prove(2, "") + ";\n")},
		"3_again.sql": {Data: []byte("-- +goose Up\n" + s.prove(3, "") + ";\n")},
	}, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestGooseWorksAsOnAPlainHandle(t *testing.T) {
	on(t, []server{postgres, mariadb}, func(t *testing.T, s server) {
		runs("github.com/pressly/goose/v3")
		exercise(t, s, func(tb testing.TB, db *sql.DB) job {
			p := s.goose(tb, db, schemas.Add(1))
			return func(ctx context.Context, j *journal) { gooseJob(ctx, p, db, j) }
		})
	})
}

func gooseJob(ctx context.Context, p *goose.Provider, db *sql.DB, j *journal) {
	results, err := p.Up(ctx)
	j.must(err)
	for _, r := range results {
		j.got("up", r.Source.Path, r.Direction, r.Error)
	}
	for _, proof := range proofs(j, ctx, db) {
		j.got("proof", proof.step, proof.locks)
		j.ran(proof.here)
	}
	current, target, err := p.GetVersions(ctx)
	j.got("versions", current, target, err)
	results, err = p.DownTo(ctx, 0)
	j.got("down", len(results), err)
}

func TestGooseLocksOutAnotherGoose(t *testing.T) {
	on(t, []server{postgres}, func(t *testing.T, s server) {
		h := setup(t, s)
		id := schemas.Add(1)
		var applied [2]int
		var both sync.WaitGroup
		for i := range applied {
			p := s.goose(t, h.db, id)
			both.Go(func() {
				results, err := p.Up(in(workload.Admin))
				if err != nil {
					t.Error(err)
				}
				applied[i] = len(results)
			})
		}
		both.Wait()
		if applied[0]+applied[1] != 3 || applied[0]*applied[1] != 0 {
			t.Errorf("one applied %d and the other %d of 3 migrations", applied[0], applied[1])
		}
		all := proofs(t, in(workload.OLTP), h.db)
		checkProofs(t, all, 3, s.homesOf(t, h))
		noLock(t, h.db, all[0].session)
	})
}

// goose holds a connection for its lock, and a Go migration that wants the handle needs a second one.
func TestGooseThatNeedsOneConnectionMoreThanThePoolHasIsRejected(t *testing.T) {
	on(t, []server{postgres}, func(t *testing.T, s server) {
		h := setup(t, s, partition.WithPool(workload.Admin, partition.PoolConfig{MaxOpenConns: 1, AcquireTimeout: 500 * time.Millisecond}))
		p := s.goose(t, h.db, schemas.Add(1), goose.NewGoMigration(4, &goose.GoFunc{
			RunDB: func(ctx context.Context, db *sql.DB) error { return db.PingContext(ctx) },
		}, nil))
		_, err := p.Up(in(workload.Admin))
		if !errors.Is(err, partition.ErrAcquireTimeout) {
			t.Errorf("%v", err)
		}
		checkProofs(t, proofs(t, in(workload.OLTP), h.db), 3, s.homesOf(t, h))
	})
}
