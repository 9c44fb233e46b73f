package integration

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// operation does one thing that a program may do, well or badly. It reports whether a pool let it.
func (s *soak) operation(rng *rand.Rand) (ran bool) {
	ctx, cancel := s.context(rng)
	defer cancel()
	operations := []func(context.Context, *rand.Rand) error{
		s.echoDirect, s.echoDirect, s.echoPrepared, s.echoPrepared, s.conn, s.transaction, s.transaction,
		s.abandonRows, s.abandonRows, s.sleep, s.panicInRows, s.panicInValue, s.killMyself,
	}
	return s.note(operations[rng.IntN(len(operations))](ctx, rng))
}

// context is one that never ends, ends in a while, ends soon (at whatever stage the operation is then), or has ended.
func (s *soak) context(rng *rand.Rand) (context.Context, context.CancelFunc) {
	ctx := workload.With(context.Background(), s.anyPool(rng))
	if rng.IntN(20) == 0 {
		ctx = stmttimeout.With(ctx, time.Duration(1+rng.IntN(20))*ms)
	}
	switch rng.IntN(20) {
	case 0:
		return context.WithTimeout(ctx, time.Duration(rng.IntN(3000))*time.Microsecond)
	case 1, 2:
		return context.WithTimeout(ctx, time.Duration(rng.IntN(40))*ms)
	case 3:
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Duration(rng.IntN(10))*ms, cancel)
		return ctx, cancel
	case 4, 5, 6, 7, 8, 9:
		return context.WithTimeout(ctx, time.Minute)
	}
	return ctx, func() {}
}

// echoed fails the test if a result is another call's.
func (s *soak) echoed(row *sql.Row, want string) error {
	var got string
	err := row.Scan(&got)
	if err == nil && got != want {
		s.Errorf("sent %s, got %s", want, got)
	}
	return err
}

func (s *soak) echoDirect(ctx context.Context, rng *rand.Rand) error {
	want := strconv.Itoa(rng.Int())
	return s.echoed(s.db.QueryRowContext(ctx, s.text, want), want)
}

func (s *soak) echoPrepared(ctx context.Context, rng *rand.Rand) error {
	want := strconv.Itoa(rng.Int())
	if rng.IntN(4) > 0 {
		return s.echoed(s.echo.QueryRowContext(ctx, want), want)
	}
	return prepared(ctx, s.db, s.text, func(stmt *sql.Stmt) error {
		return s.echoed(stmt.QueryRowContext(ctx, want), want)
	})
}

func (s *soak) conn(ctx context.Context, rng *rand.Rand) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for range 1 + rng.IntN(3) {
		want := strconv.Itoa(rng.Int())
		err = errors.Join(err, s.echoed(c.QueryRowContext(ctx, s.text, want), want))
	}
	if rng.IntN(4) == 0 {
		err = errors.Join(err, partition.Raw(c, func(any) error { return nil }))
	}
	return err
}

func (s *soak) transaction(ctx context.Context, rng *rand.Rand) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	want := strconv.Itoa(rng.Int())
	if err := s.echoed(tx.QueryRowContext(ctx, s.text, want), want); err != nil {
		return err
	}
	if rng.IntN(2) == 0 {
		if err := s.echoed(tx.StmtContext(ctx, s.echo).QueryRowContext(ctx, want), want); err != nil {
			return err
		}
	}
	if rng.IntN(4) == 0 {
		return nil
	}
	return tx.Commit()
}

// manyRows is more than a connection buffers.
func (s *soak) manyRows() string {
	if s.target.arg == "?" {
		return "SELECT seq FROM seq_1_to_3000"
	}
	return "SELECT generate_series(1, 3000)"
}

func (s *soak) abandonRows(ctx context.Context, rng *rand.Rand) error {
	rows, err := s.db.QueryContext(ctx, s.manyRows())
	if err != nil {
		return err
	}
	for i := rng.IntN(30); i > 0 && rows.Next(); i-- {
	}
	return rows.Close()
}

// sleep runs into a statement timeout, or is cancelled, more often than not.
func (s *soak) sleep(ctx context.Context, rng *rand.Rand) error {
	return allRows(s.db.QueryContext(ctx, s.nap, float64(rng.IntN(60))/1000))
}

var errDeliberate = errors.New("deliberate")

// panicker panics where arguments are converted.
type panicker struct{}

func (panicker) Value() (sqldriver.Value, error) { panic(errDeliberate) }

// survive recovers the panic that was meant.
func survive() {
	if v := recover(); v != nil && v != errDeliberate {
		panic(v)
	}
}

// panicInRows panics beside Scan, not in a Scanner: that leaves (*sql.Rows).Close waiting for a lock of database/sql for
// ever, with any driver.
func (s *soak) panicInRows(ctx context.Context, _ *rand.Rand) error {
	defer survive()
	rows, err := s.db.QueryContext(ctx, s.text, "1")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		panic(errDeliberate)
	}
	return rows.Err()
}

func (s *soak) panicInValue(ctx context.Context, rng *rand.Rand) error {
	defer survive()
	if rng.IntN(2) == 0 {
		_, err := s.db.ExecContext(ctx, s.text, panicker{})
		return err
	}
	_, err := s.echo.ExecContext(ctx, panicker{})
	return err
}

func (s *soak) killMyself(ctx context.Context, rng *rand.Rand) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var id int
	if err := c.QueryRowContext(ctx, s.target.session).Scan(&id); err != nil {
		return err
	}
	if rng.IntN(4) == 0 { // most stay alive
		s.kill(id)
	}
	return c.PingContext(ctx)
}

// killOne ends any session of a pool, whatever it does.
func (s *soak) killOne(rng *rand.Rand) {
	list := "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'soak%' ORDER BY random() LIMIT 1"
	if s.target.arg == "?" {
		list = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER LIKE 'soak%' ORDER BY RAND() LIMIT 1"
	}
	var id int
	if err := s.admin.QueryRow(list).Scan(&id); err == nil {
		s.kill(id)
	} else if !errors.Is(err, sql.ErrNoRows) {
		s.Errorf("admin: %v", err)
	}
}

// kill may come too late: the session may have ended by itself.
func (s *soak) kill(id int) { s.admin.Exec(fmt.Sprintf(s.target.kill, id)) }
