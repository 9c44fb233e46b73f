package fakedb

import (
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"
)

// commands is the language: see the package's documentation. It is filled in by init because "rows ... at K COMMAND"
// looks into it.
var commands map[string]command

func init() {
	commands = map[string]command{
		"ok":         func([]string) (step, bool) { return func(*execution) error { return nil }, true },
		"affected":   affected,
		"sleep":      lasting(func(x *execution, d time.Duration) error { return x.wait(d, x.ctx.Done()) }),
		"hang":       alone(func(x *execution) error { return x.wait(forever, x.ctx.Done()) }),
		"deaf":       deaf,
		"orphan":     lasting((*execution).orphan),
		"rows":       countedRows,
		"multi":      multi,
		"types":      alone((*execution).types),
		"args":       func([]string) (step, bool) { return (*execution).args, true },
		"id":         alone(func(x *execution) error { return x.cell("id", int64(x.c.id)) }),
		"tx":         alone(func(x *execution) error { return x.cell("tx", x.c.describeTx()) }),
		"set":        set,
		"show":       show,
		"reset":      reset,
		"discard":    discard,
		"deallocate": deallocate,
		"alter":      func([]string) (step, bool) { return (*execution).alter, true },
		"select":     version,
		"skip":       alone((*execution).skip),
		"badconn": choosing(map[string]error{
			"":        sqldriver.ErrBadConn,
			"wrapped": fmt.Errorf("fakedb: broken pipe: %w", sqldriver.ErrBadConn),
		}),
		"error":   failing,
		"timeout": choosing(timeoutErrors),
		"cancel":  choosing(cancelErrors),
		"panic":   alone(func(*execution) error { panic("fakedb: panic as asked") }),
	}
}

func affected(words []string) (step, bool) {
	n, ok := counts(strings.Join(words, " "), " ")
	return func(x *execution) error { x.affected = int64(n[0]); return nil }, ok && len(n) == 1
}

func deaf(words []string) (step, bool) {
	if len(words) == 0 {
		return func(x *execution) error { return x.waitDeaf(forever) }, true
	}
	return lasting((*execution).waitDeaf)(words)
}

// failing is the command error; the word is a SQLSTATE.
func failing(words []string) (step, bool) {
	err := errf("XX000", "an error as asked")
	if len(words) == 1 {
		err = errf(words[0], "an error as asked")
	}
	return func(*execution) error { return err }, len(words) <= 1
}

// countedRows is the command rows. What may follow the count comes in pairs, but for "at K", which a whole command
// follows.
func countedRows(words []string) (step, bool) {
	if len(words)%2 == 0 && !slices.Contains(words, "at") {
		return nil, false
	}
	n, ok := counts(words[0], " ")
	if !ok {
		return nil, false
	}
	model := countingCursor(1, n[0])
	for words = words[1:]; len(words) > 1; words = words[2:] {
		if words[0] == "at" {
			return model.copied, model.failAt(words[1], words[2:])
		}
		if !model.modify(words[0], words[1]) {
			return nil, false
		}
	}
	return model.copied, len(words) == 0
}

func multi(words []string) (step, bool) {
	n, ok := counts(strings.Join(words, " "), "x")
	if !ok || len(n) != 2 {
		return nil, false
	}
	return countingCursor(n[0], n[1]).copied, n[0] > 0
}

var oneOfEach = []sqldriver.Value{
	int64(1), 1.5, "text", []byte("bytes"), true, time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC), nil,
}

func (x *execution) types() error {
	names := []string{"int8", "numeric", "varchar", "bytea", "bool", "timestamptz", "null"}
	x.answer = tableCursor(names, oneOfEach)
	return nil
}

func (x *execution) args() error {
	var rows [][]sqldriver.Value
	for _, a := range x.call.Args {
		value := a.Value
		if !sqldriver.IsValue(value) {
			value = fmt.Sprint(value)
		}
		rows = append(rows, []sqldriver.Value{int64(a.Ordinal), a.Name, fmt.Sprintf("%T", a.Value), value})
	}
	x.answer = tableCursor([]string{"ordinal", "name", "type", "value"}, rows...)
	return nil
}

// cell answers one value.
func (x *execution) cell(column string, v sqldriver.Value) error {
	x.answer = tableCursor([]string{column}, []sqldriver.Value{v})
	return nil
}

func version(words []string) (step, bool) {
	return func(x *execution) error {
		if x.c.s.version == "" {
			return errf("42883", "function version() does not exist")
		}
		return x.cell("version", x.c.s.version)
	}, len(words) == 1 && fold(words[0]) == "version()"
}

// skip sends database/sql round by Prepare.
func (x *execution) skip() error {
	if x.st == nil {
		return sqldriver.ErrSkip
	}
	return nil
}
