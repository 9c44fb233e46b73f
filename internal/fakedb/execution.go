package fakedb

import (
	"context"
	sqldriver "database/sql/driver"
	"io"
	"strconv"
	"time"
)

// execution is one run of a text, from Exec or Query to the end of its rows.
type execution struct {
	c    *conn
	ctx  context.Context
	call Call
	st   *stmt // nil if run directly

	limitAt  time.Time // when a session setting ends it; zero: never
	limitErr error

	answer   *cursor // of the last command with rows; nil if there was none
	affected int64
}

// forever is a wait that does not end by itself.
const forever time.Duration = -1

// exec is an Exec, of a prepared statement if st is not nil.
func (c *conn) exec(ctx context.Context, call Call, st *stmt) (sqldriver.Result, error) {
	x := &execution{c: c, ctx: ctx, call: call, st: st}
	err := c.do(ctx, call, func() error {
		if err := x.play(); err != nil {
			return err
		}
		return x.drain()
	})
	if err != nil {
		return nil, err
	}
	return sqldriver.RowsAffected(x.affected), nil
}

// play runs the text up to its first row.
func (x *execution) play() error {
	if x.st != nil {
		if err := x.st.refuse(x.call.Kind); err != nil {
			return err
		}
		x.st.cursor.end()
	}
	x.affected = 1
	x.limitAt, x.limitErr = x.c.limit()
	if a, err := x.c.s.answer(x.ctx, x.call); a != nil || err != nil {
		x.take(a)
		return err
	}
	parsed, err := parse(x.call.Text)
	for _, step := range parsed.steps {
		if err == nil {
			err = step(x)
		}
	}
	return err
}

func (x *execution) take(a *Answer) {
	if a != nil && len(a.Columns) > 0 {
		x.answer = tableCursor(a.Columns, a.Rows...)
	}
}

// drain is what becomes of rows that nobody asked for.
func (x *execution) drain() error {
	if x.answer == nil {
		return nil
	}
	for x.affected = 0; ; {
		_, err := x.answer.next(x)
		switch {
		case err == nil:
			x.affected++
		case err == io.EOF && x.answer.hasNextSet():
			_ = x.answer.nextSet() // cannot fail: there is one
		case err == io.EOF:
			return nil
		default:
			return err
		}
	}
}

// cursor returns what the rows of a Query read from. Row sets of one prepared statement share theirs.
func (x *execution) cursor() *cursor {
	if x.answer == nil {
		x.answer = tableCursor([]string{"ok"}, []sqldriver.Value{int64(1)})
	}
	if x.st == nil {
		return x.answer
	}
	*x.st.cursor = *x.answer
	return x.st.cursor
}

// interrupted says why a statement cannot go on, nil if it can.
func (x *execution) interrupted() error {
	if x.c.isKilled() {
		return errTerminated
	}
	if x.ctx.Err() != nil {
		return x.cutShort()
	}
	return nil
}

// cutShort is the end of a statement whose context is done.
func (x *execution) cutShort() error {
	if x.c.s.cancelBreaks {
		x.c.breakDown()
	}
	return x.ctx.Err()
}

// wait keeps the statement running for d, or until done, a limit or a kill ends it. A nil done is deafness.
func (x *execution) wait(d time.Duration, done <-chan struct{}) error {
	over, stop := after(d)
	defer stop()
	limit, stopLimit := after(x.untilLimit())
	defer stopLimit()
	select {
	case <-over:
		return nil
	case <-limit:
		return x.limitErr
	case <-done:
		return x.cutShort()
	case <-x.c.killed:
		return errTerminated
	}
}

// waitDeaf is wait for a driver that does not look at the context. It notices when its connection is closed under it.
func (x *execution) waitDeaf(d time.Duration) error {
	err := x.wait(d, x.c.shut)
	select {
	case <-x.c.shut:
		return errConnClosed
	default:
		return err
	}
}

func (x *execution) untilLimit() time.Duration {
	if x.limitAt.IsZero() {
		return forever
	}
	return max(0, time.Until(x.limitAt))
}

// orphan waits for d. If the context ends it first, only the driver lets go: the rest passes without a caller.
func (x *execution) orphan(d time.Duration) error {
	end := time.Now().Add(d)
	err := x.wait(d, x.ctx.Done())
	if err == nil || err != x.ctx.Err() {
		return err
	}
	x.c.s.mu.Lock()
	x.c.broken, x.c.orphaned = true, true
	x.c.s.mu.Unlock()
	go func() {
		_ = x.wait(time.Until(end), nil) // however it ends, it has ended
		x.c.s.mu.Lock()
		defer x.c.s.mu.Unlock()
		x.c.finishLocked()
	}()
	return err
}

// after returns a channel that gives a value after d, never if d is negative.
func after(d time.Duration) (<-chan time.Time, func()) {
	if d < 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(d)
	return timer.C, func() { timer.Stop() }
}

// limit returns when the session's settings end a statement that begins now, and its error; zero for never.
func (c *conn) limit() (at time.Time, err error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	now := time.Now()
	for _, l := range c.s.limits {
		d := settingDuration(c.settings[l.setting], l.unit)
		if end := now.Add(d); d > 0 && (at.IsZero() || end.Before(at)) {
			at, err = end, l.err
		}
	}
	return at, err
}

// settingDuration reads a plain number of units, or a duration. What it cannot read is no limit.
func settingDuration(value string, unit time.Duration) time.Duration {
	if f, err := strconv.ParseFloat(value, 64); err == nil {
		return time.Duration(f * float64(unit))
	}
	d, _ := time.ParseDuration(value) // 0 on error
	return d
}
