package stmttimeout

import (
	"errors"
	"reflect"
)

// sqlState returns the SQLSTATE of the server's error within err, and its message. pgx and lib/pq both have the method;
// the message is a field of both, and the whole text stands in for it where there is none.
func sqlState(err error) (state, message string) {
	var e interface {
		error
		SQLState() string
	}
	if !errors.As(err, &e) {
		return "", ""
	}
	if f, ok := field(e, "Message"); ok && f.Kind() == reflect.String {
		return e.SQLState(), f.String()
	}
	return e.SQLState(), e.Error()
}

// Answered reports whether err, or an error that it wraps, came from the server: then the statement runs no more. It knows
// the errors of PostgreSQL and MySQL drivers by their shape.
func Answered(err error) bool {
	state, _ := sqlState(err)
	return state != "" || anyNumber(err, func(int64) bool { return true })
}

// anyNumber reports whether match accepts the field Number of an error in the tree of err. MySQL drivers have no method
// for the server's error number, and naming their type would mean importing them.
func anyNumber(err error, match func(int64) bool) bool {
	if err == nil {
		return false
	}
	if n, ok := numberField(err); ok && match(n) {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return anyNumber(e.Unwrap(), match)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if anyNumber(inner, match) {
				return true
			}
		}
	}
	return false
}

func numberField(err error) (int64, bool) {
	f, ok := field(err, "Number")
	switch {
	case !ok:
		return 0, false
	case f.CanInt():
		return f.Int(), true
	case f.CanUint():
		return int64(f.Uint()), true
	}
	return 0, false
}

// field returns the named field of the struct that err is or points to.
func field(err error, name string) (reflect.Value, bool) {
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer {
		v = v.Elem() // of a nil pointer: the zero Value, whose kind is Invalid
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	sf, ok := v.Type().FieldByName(name)
	if !ok {
		return reflect.Value{}, false
	}
	f, nilEmbedded := v.FieldByIndexErr(sf.Index)
	return f, nilEmbedded == nil
}
