package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

const (
	users          = 1000            // rows in the table
	connectTimeout = 5 * time.Second // until a server counts as unreachable
	cleanUpTimeout = 2 * time.Second // also after an interrupt
)

// database is where the demo plays: a server, or a file, with a table of ours.
type database struct {
	driver, dsn string
	family      family
	table       string
	admin       *sql.DB // makes and drops the table
	dir         string  // temporary; empty if the database is the user's
}

// openDatabase connects, and makes and fills the table. Its error is one line
// without the password.
func openDatabase(ctx context.Context, driver, dsn string) (*database, error) {
	db := &database{
		driver: driver, dsn: dsn, family: families[driver],
		table: fmt.Sprintf("sqlbulkhead_demo_%08x", rand.Uint32()),
	}
	if err := db.open(ctx); err != nil {
		err = explain(err, db.dsn)
		db.close(ctx) // what is there of it
		return nil, err
	}
	return db, nil
}

func (db *database) open(ctx context.Context) (err error) {
	if db.dsn == "" {
		if db.dir, db.dsn, err = temporaryFile(); err != nil {
			return err
		}
	}
	if err := checkDSN(db.driver, db.dsn); err != nil {
		return err
	}
	if db.driver == "sqlite" && isShared(db.dsn) {
		return errNotAFile
	}
	if db.admin, err = sql.Open(db.driver, db.dsn); err != nil {
		return err
	}
	db.admin.SetMaxOpenConns(1)
	if err := db.connect(ctx); err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	if err := db.create(ctx); err != nil {
		return fmt.Errorf("cannot make the table %s: %w", db.table, err)
	}
	return nil
}

func (db *database) connect(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err := db.admin.PingContext(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no answer within %v", connectTimeout)
	}
	return err
}

func (db *database) create(ctx context.Context) error {
	if _, err := db.admin.ExecContext(ctx, "CREATE TABLE "+db.table+" (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL)"); err != nil {
		return err
	}
	var insert strings.Builder
	for id := 1; id <= users; id++ {
		if id > 1 {
			insert.WriteByte(',')
		}
		fmt.Fprintf(&insert, "(%d,'user %[1]d')", id)
	}
	_, err := db.admin.ExecContext(ctx, "INSERT INTO "+db.table+" (id, name) VALUES "+insert.String())
	return err
}

// close drops the table, or removes the file that it is in. It does so after an
// interrupt too.
func (db *database) close(ctx context.Context) error {
	var errs []error
	if db.admin != nil {
		if db.dir == "" {
			errs = append(errs, db.drop(ctx))
		}
		errs = append(errs, db.admin.Close())
	}
	if db.dir != "" {
		errs = append(errs, os.RemoveAll(db.dir))
	}
	return explain(errors.Join(errs...), db.dsn)
}

func (db *database) drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	if _, err := db.admin.ExecContext(ctx, "DROP TABLE IF EXISTS "+db.table); err != nil {
		return fmt.Errorf("the table %s is left behind: %w", db.table, err)
	}
	return nil
}

// store is the service's code. It is the same in both arrangements; what
// differs is how the handle was opened.
type store struct {
	db            *sql.DB
	login, report string
	arguments     []any
}

func (db *database) store(handle *sql.DB, report time.Duration) store {
	return store{
		db:        handle,
		login:     strings.ReplaceAll(db.family.login, "{table}", db.table),
		report:    strings.ReplaceAll(db.family.report, "{table}", db.table),
		arguments: db.family.arguments(report),
	}
}

// Login looks up one user, of any number.
func (s store) Login(ctx context.Context, user int) error {
	var name string
	return s.db.QueryRowContext(ctx, s.login, user%users+1).Scan(&name)
}

// Report holds a connection for the time of a report.
func (s store) Report(ctx context.Context) error {
	var ignored any
	return s.db.QueryRowContext(ctx, s.report, s.arguments...).Scan(&ignored)
}
