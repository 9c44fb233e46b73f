package driver

import (
	sqldriver "database/sql/driver"
	"reflect"
	"time"
)

// maxCleanup bounds the wait for a driver that closes in the background. pgx gives itself 15 s.
const maxCleanup = 20 * time.Second

// awaitCleanup waits until a connection of pgx is really closed. After a call that was cancelled pgx only marks it as
// closed; it asks the server to cancel, waits for the end and closes the socket in a goroutine of its own, and Close
// returns at once. A permit given back before that lets one connection more onto the server than the cap allows.
func awaitCleanup(conn sqldriver.Conn) {
	done := cleanupDone(conn)
	if done == nil {
		return
	}
	timer := time.NewTimer(maxCleanup)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// cleanupDone is conn.Conn().PgConn().CleanupDone() for a *stdlib.Conn, found without an import of pgx, and nil for
// every other connection.
func cleanupDone(conn sqldriver.Conn) <-chan struct{} {
	v := callMethod(reflect.ValueOf(conn).MethodByName("Conn"))
	if v.IsValid() {
		v = callMethod(v.MethodByName("PgConn"))
	}
	if v.IsValid() {
		v = callMethod(v.MethodByName("CleanupDone"))
	}
	if !v.IsValid() {
		return nil
	}
	done, _ := v.Interface().(chan struct{})
	return done
}

// callMethod calls a method without arguments and with one result that is no nil pointer; else the result is not valid.
func callMethod(m reflect.Value) reflect.Value {
	if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
		return reflect.Value{}
	}
	out := m.Call(nil)[0]
	if k := out.Kind(); (k == reflect.Pointer || k == reflect.Interface) && out.IsNil() {
		return reflect.Value{}
	}
	return out
}
