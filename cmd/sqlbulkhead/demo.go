package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// demo plays logins beside slow reports, and prints what became of both.
func demo(ctx context.Context, args []string, stdout io.Writer) (err error) {
	s, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, s.driver, s.dsn)
	if err != nil {
		return interruption(ctx, err)
	}
	defer func() {
		if failed := db.close(ctx); failed != nil {
			err = failed // it left something behind, which matters more
		}
	}()
	printHeading(stdout, db, s)
	began := time.Now()
	results, err := perform(ctx, db, s, newScreen(stdout))
	if err != nil {
		return interruption(ctx, explain(err, db.dsn))
	}
	fmt.Fprintln(stdout)
	printTable(stdout, results, db.dsn)
	fmt.Fprintf(stdout, "\n%s\n", verdict(results[0], results[1], results[2]))
	return writePage(s, began, results)
}

// interruption is ctx's error instead of whatever it has led to.
func interruption(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func printHeading(w io.Writer, db *database, s settings) {
	where := "through " + s.driver
	if db.dir != "" {
		where = "in a temporary SQLite file"
	}
	fmt.Fprintf(w, "%d logins a second beside %d analysts with reports of %s, on %d connections:\n"+
		"at first no reports, then one pool for all, then partitions of %d connections\n"+
		"for logins and %d for reports. Played %s.\n\n",
		s.logins, s.analysts, short(s.hold), s.connections, s.oltp(), s.reporting, where)
}

// stage is a handle and what is played on it.
type stage struct {
	open func(driver, dsn string, s settings) (*sql.DB, error)
	warm func(ctx context.Context, db *sql.DB, s settings) error
	acts []act
}

// act is a row of the table.
type act struct {
	name string
	scenario
}

// stages are the two arrangements. The baseline needs fewer logins, and is
// played in the one pool, so that the partitions have to stand comparison with
// plain database/sql.
func (s settings) stages() []stage {
	crowd := scenario{s.duration, s.logins, s.analysts}
	quiet := scenario{s.duration / 2, s.logins, 0}
	return []stage{
		{openShared, warmShared, []act{
			{"no reports", quiet},
			{fmt.Sprintf("one pool of %d", s.connections), crowd},
		}},
		{openPartitions, warmPartitions, []act{
			{fmt.Sprintf("partitions %d+%d", s.oltp(), s.reporting), crowd},
		}},
	}
}

func warmShared(ctx context.Context, db *sql.DB, s settings) error {
	return warm(ctx, db, s.connections)
}

func warmPartitions(ctx context.Context, db *sql.DB, s settings) error {
	return errors.Join(warm(asLogin(ctx), db, s.oltp()), warm(asReport(ctx), db, s.reporting))
}

// perform plays all stages, one after the other.
func perform(ctx context.Context, db *database, s settings, out screen) ([]result, error) {
	var results []result
	for _, st := range s.stages() {
		played, err := st.perform(ctx, db, s, out)
		if err != nil {
			return nil, err
		}
		results = append(results, played...)
	}
	return results, nil
}

func (st stage) perform(ctx context.Context, db *database, s settings, out screen) (_ []result, err error) {
	handle, err := st.open(db.driver, db.dsn, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, handle.Close()) }()
	if err := st.warm(ctx, handle, s); err != nil {
		return nil, err
	}
	var results []result
	for _, a := range st.acts {
		results = append(results, a.perform(ctx, db.store(handle, s.hold), out))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return results, nil
}

func (a act) perform(ctx context.Context, t traffic, out screen) result {
	var count tally
	stop := out.watch(a.name, a.duration, &count)
	play(ctx, t, a.scenario, &count)
	stop()
	return count.result(a.name)
}
