package fakedb

import (
	sqldriver "database/sql/driver"
	"io"
	"time"
)

// cursor is the server's end of rows: result sets, and a place in them. The zero cursor is at its end.
type cursor struct {
	sets    []resultSet
	current int
	pos     int           // rows read of the current set
	each    time.Duration // what a row takes
	fault   step          // nil once it has happened
	faultAt int           // happens after this many rows
}

type resultSet struct {
	columns []string
	n       int
	row     func(i int) []sqldriver.Value // i from 0
}

// tableCursor has one set with these rows.
func tableCursor(columns []string, rows ...[]sqldriver.Value) *cursor {
	row := func(i int) []sqldriver.Value {
		if i < len(rows) {
			return rows[i]
		}
		return nil
	}
	return &cursor{sets: []resultSet{{columns, len(rows), row}}}
}

// countingCursor has sets of n rows that count from 1.
func countingCursor(sets, n int) *cursor {
	c := new(cursor)
	row := func(i int) []sqldriver.Value { return []sqldriver.Value{int64(i + 1)} }
	for range sets {
		c.sets = append(c.sets, resultSet{[]string{"n"}, n, row})
	}
	return c
}

func (c *cursor) columns() []string {
	if len(c.sets) == 0 {
		return nil
	}
	return c.sets[c.current].columns
}

// columnType goes by the first row. A column without any is of unknown type.
func (c *cursor) columnType(i int) columnType {
	if row := c.sets[c.current].row(0); i < len(row) {
		return typeOf(row[i])
	}
	return typeOf(nil)
}

// next returns the next row, io.EOF after the last.
func (c *cursor) next(x *execution) ([]sqldriver.Value, error) {
	if fault := c.fault; fault != nil && c.pos == c.faultAt {
		c.fault = nil
		if err := fault(x); err != nil {
			return nil, err
		}
	}
	if len(c.sets) == 0 || c.pos >= c.sets[c.current].n {
		return nil, io.EOF
	}
	if c.each > 0 {
		if err := x.wait(c.each, x.ctx.Done()); err != nil {
			return nil, err
		}
	}
	c.pos++
	return c.sets[c.current].row(c.pos - 1), nil
}

func (c *cursor) hasNextSet() bool { return c.current+1 < len(c.sets) }

func (c *cursor) nextSet() error {
	if !c.hasNextSet() {
		return io.EOF
	}
	c.current++
	c.pos = 0
	return nil
}

// end leaves nothing to read, for whoever shares the cursor too.
func (c *cursor) end() {
	if len(c.sets) > 0 {
		c.current = len(c.sets) - 1
		c.pos = c.sets[c.current].n
	}
	c.fault = nil
}

// modify is for a pair of words after "rows N": false if it is not understood.
func (c *cursor) modify(word, value string) bool {
	switch word {
	case "sleep":
		d, err := time.ParseDuration(value)
		c.each = d
		return err == nil
	case "err":
		return c.failAt(value, []string{"error"})
	default:
		return false
	}
}

// failAt is for "at K COMMAND".
func (c *cursor) failAt(after string, command []string) bool {
	n, ok := counts(after, " ")
	if !ok || len(command) == 0 {
		return false
	}
	fault, err := compile(command)
	c.fault, c.faultAt = fault, n[0]
	return err == nil
}

// copied is a step that answers with a fresh copy.
func (c *cursor) copied(x *execution) error {
	fresh := *c
	x.answer = &fresh
	return nil
}
