package conformance

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// panicked is the value of a recovered panic.
type panicked struct{ value any }

func describeAll(values []any) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = describe(v)
	}
	return strings.Join(parts, ", ")
}

// describe is v with its type, as precise as it can be without addresses.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case panicked:
		return "panic: " + describe(v.value)
	case error:
		return describeError(v)
	case []byte:
		return describeBytes("[]byte", v)
	case sql.RawBytes:
		return describeBytes("RawBytes", v)
	case string:
		return fmt.Sprintf("%q", v)
	case time.Time:
		return fmt.Sprintf("time %s %s", v.Format(time.RFC3339Nano), v.Location())
	case reflect.Type:
		return fmt.Sprint("type ", v)
	case []any:
		return "[" + describeAll(v) + "]"
	}
	return describeValue(reflect.ValueOf(v))
}

// describeValue follows pointers, also those that a slice holds.
func describeValue(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return fmt.Sprintf("%v(nil)", v.Type())
	case v.Kind() == reflect.Pointer:
		return "&" + describe(v.Elem().Interface())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Pointer && !v.IsNil():
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = describe(v.Index(i).Interface())
		}
		return fmt.Sprintf("%v{%s}", v.Type(), strings.Join(parts, ", "))
	}
	return fmt.Sprintf("%T(%+v)", v.Interface(), v.Interface())
}

func describeBytes(name string, b []byte) string {
	if b == nil {
		return name + "(nil)"
	}
	return fmt.Sprintf("%s(%q)", name, b)
}

// known are the errors that callers compare with.
var known = []struct {
	name string
	err  error
}{
	{"ErrBadConn", sqldriver.ErrBadConn}, {"ErrSkip", sqldriver.ErrSkip}, {"ErrRemoveArgument", sqldriver.ErrRemoveArgument},
	{"ErrNoRows", sql.ErrNoRows}, {"ErrTxDone", sql.ErrTxDone}, {"ErrConnDone", sql.ErrConnDone},
	{"EOF", io.EOF}, {"Canceled", context.Canceled}, {"DeadlineExceeded", context.DeadlineExceeded},
}

// describeError is all that a caller can find out: the types of the chain, the text, and which errors it is.
func describeError(err error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "error %s %q", chain(err), unnumbered(err.Error()))
	for _, k := range known {
		switch {
		case err == k.err:
			b.WriteString(" = " + k.name)
		case errors.Is(err, k.err):
			b.WriteString(" is " + k.name)
		}
	}
	return b.String()
}

// chain is the concrete types that errors.As walks over.
func chain(err error) string {
	name := fmt.Sprintf("%T", err)
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		if inner := u.Unwrap(); inner != nil {
			return name + " < " + chain(inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range u.Unwrap() {
			name += " < (" + chain(inner) + ")"
		}
	}
	return name
}

var (
	address    = regexp.MustCompile(`(127\.0\.0\.1|\[::1\]|localhost):\d+`)
	pointer    = regexp.MustCompile(`0x[0-9a-f]{6,}`)
	connection = regexp.MustCompile(`(?i)(connection|thread|process)( id)?:? \d+`)
	stmtName   = regexp.MustCompile(`prepared statement "[^"]*"|stmt(cache)?_[0-9a-f]+`)
)

// unnumbered is an error's text without what changes from one connection to the next.
func unnumbered(text string) string {
	text = address.ReplaceAllString(text, "ADDRESS")
	text = pointer.ReplaceAllString(text, "POINTER")
	text = connection.ReplaceAllString(text, "$1 ID")
	return stmtName.ReplaceAllString(text, "STATEMENT")
}
