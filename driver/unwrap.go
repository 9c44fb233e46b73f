package driver

import (
	sqldriver "database/sql/driver"
	"reflect"
)

// maxWrappers is how many wrappers may lie around a driver's connection, should one lie around itself.
const maxWrappers = 8

// unwrap is the driver's own connection inside those that tracers and loggers lay around it, and whether there is any such:
// what a Raw method returns, as that of otelsql does, or what the one field of the type driver.Conn holds, as that of most
// others does. One that has several may use any of them (a reader and a writer), so it is not looked into.
//
// Their optional interfaces are not those of the driver: a wrapper vouches for each connection of a driver that does not.
func unwrap(conn sqldriver.Conn) (inner sqldriver.Conn, wrapped bool) {
	for range maxWrappers {
		inner := inside(conn)
		if inner == nil {
			break
		}
		conn, wrapped = inner, true
	}
	return conn, wrapped
}

func inside(conn sqldriver.Conn) (inner sqldriver.Conn) {
	if w, ok := conn.(interface{ Raw() sqldriver.Conn }); ok {
		return w.Raw()
	}
	s, found := structOf(conn), false
	for i := range s.NumField() {
		if s.Field(i).Type() != reflect.TypeFor[sqldriver.Conn]() {
			continue
		}
		if found {
			return nil
		}
		inner, found = fieldAs[sqldriver.Conn](s.Field(i)), true
	}
	return inner
}

// structOf is the struct that conn is or points to, such that its fields can be read; of anything else an empty one.
func structOf(conn sqldriver.Conn) reflect.Value {
	v := reflect.Indirect(reflect.ValueOf(conn))
	switch {
	case v.Kind() != reflect.Struct:
		return reflect.ValueOf(struct{}{})
	case v.CanAddr():
		return v
	}
	readable := reflect.New(v.Type()).Elem()
	readable.Set(v)
	return readable
}

// fieldAs is the value of a field that has type T, exported or not; else, and where there is no such field, it is nil.
func fieldAs[T any](field reflect.Value) (value T) {
	if field.IsValid() && field.Type() == reflect.TypeFor[T]() {
		value = *(*T)(field.Addr().UnsafePointer())
	}
	return value
}
