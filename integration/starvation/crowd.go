package starvation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// What the people and jobs beside login do. Each is one attempt of a crowd.

// report holds a connection while it waits on the server.
func (s *scene) report(ctx context.Context, _ int) error {
	_, err := s.db.ExecContext(ctx, fmt.Sprintf(s.stage.words.report, s.takes.Seconds()))
	return err
}

// lunch opens a transaction, writes to it, and leaves for the rest of the day.
func (s *scene) lunch(ctx context.Context, worker int) error {
	began := time.Now()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // the day's end may have done it
	if _, err := tx.ExecContext(ctx, s.stage.words.visit, worker+1); err != nil {
		return err
	}
	s.note(workload.Batch, began, time.Since(began), nil)
	<-ctx.Done()
	return nil
}

// export reads a million rows, a hundred of them in 10 ms.
func (s *scene) export(ctx context.Context, _ int) error {
	began := time.Now()
	rows, err := s.db.QueryContext(ctx, s.stage.words.million)
	if err != nil {
		return err
	}
	defer rows.Close()
	s.note(workload.Reporting, began, time.Since(began), nil)
	for n := 0; rows.Next(); n++ {
		if n%100 == 0 && !sleep(ctx, 10*time.Millisecond) {
			break
		}
	}
	return rows.Err()
}

// leakRows never closes its rows. That the day's end does is not their merit.
func (s *scene) leakRows(ctx context.Context, _ int) error {
	_, err := s.db.QueryContext(ctx, "SELECT id, name FROM users")
	return err
}

// leakTx neither commits nor rolls back.
func (s *scene) leakTx(ctx context.Context, _ int) error {
	_, err := s.db.BeginTx(ctx, nil)
	return err
}

// touch is a moment's work. It has no deadline of its own.
func (s *scene) touch(ctx context.Context, user int) error {
	var name string
	return s.db.QueryRowContext(ctx, s.stage.words.login, user+1).Scan(&name)
}

// storm starts a report every 5 ms, each of which is cancelled before it is
// done.
func (s *scene) storm(d time.Duration) {
	ctx := in(s.ctx, workload.Reporting)
	for end := time.Now().Add(d); time.Now().Before(end) && sleep(ctx, 5*time.Millisecond); {
		s.crowds.Go(func() {
			limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond+rand.N(200*time.Millisecond))
			defer cancel()
			began := time.Now()
			err := s.report(limited, 0)
			s.note(workload.Reporting, began, time.Since(began), err)
		})
	}
}

// analysts are the crowd of Monday morning.
func (s *scene) analysts() { s.crowd(40, workload.Reporting, 0, s.report) }

// probes are a call at a time in the pools that have no crowd.
func (s *scene) probes() {
	s.crowd(1, workload.OLTP, pauseBetween, s.touch)
	s.crowd(1, workload.Batch, pauseBetween, s.touch)
}
