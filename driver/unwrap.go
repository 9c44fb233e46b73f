package driver

import (
	sqldriver "database/sql/driver"
	"reflect"
)

// maxLooks bounds the search for a driver's connection, should a wrapper lie around itself.
const maxLooks = 32

// unwrap is the driver's own connection inside those that tracers and loggers lay around it, and whether there is any such.
// It is what a Raw method returns, as that of otelsql does, or what the wrapper's fields hold. One whose fields lead to several
// may use any of them (a reader and a writer), and is not looked into.
//
// Their optional interfaces are not those of the driver: a wrapper vouches for each connection of a driver that does not.
func unwrap(conn sqldriver.Conn) (inner sqldriver.Conn, wrapped bool) {
	todo := []sqldriver.Conn{conn}
	for looks := 0; len(todo) > 0; looks++ {
		c := todo[0]
		if v := reflect.ValueOf(c); looks == maxLooks || v.Kind() == reflect.Pointer && v.IsNil() {
			return conn, false
		}
		next := inside(c)
		switch todo = append(todo[1:], next...); {
		case len(next) > 0:
			wrapped = true
		case inner == nil:
			inner = c
		case !samePointer(inner, c):
			return conn, false
		}
	}
	return inner, wrapped
}

func samePointer(a, b sqldriver.Conn) bool {
	return reflect.TypeOf(a).Kind() == reflect.Pointer && a == b
}

// inside are the connections that conn holds, none if a place for one is empty.
func inside(conn sqldriver.Conn) (found []sqldriver.Conn) {
	if w, ok := conn.(interface{ Raw() sqldriver.Conn }); ok {
		if inner := w.Raw(); inner != nil {
			found = append(found, inner)
		}
		return found
	}
	s := structOf(conn)
	for i := range s.NumField() {
		inner, isPlace := heldIn(s.Field(i))
		switch {
		case inner != nil:
			found = append(found, inner)
		case isPlace:
			return nil
		}
	}
	return found
}

var connType = reflect.TypeFor[sqldriver.Conn]()

// heldIn is the connection that a field holds, and whether its type makes it a place for one. Some wrappers hold one by its
// optional interfaces alone, and some hold a part of themselves that holds it. A field of another type is not read: it may
// be written meanwhile.
func heldIn(field reflect.Value) (conn sqldriver.Conn, isPlace bool) {
	t := field.Type()
	isPlace = t.Implements(connType) && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface)
	if !isPlace && (t.Kind() != reflect.Interface || t.PkgPath() != connType.PkgPath()) {
		return nil, false
	}
	if v := readable(field); !v.IsNil() {
		conn, _ = v.Interface().(sqldriver.Conn)
	}
	return conn, isPlace
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
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// readable is a field of structOf such that it can be read although it is not exported.
func readable(field reflect.Value) reflect.Value {
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
}
