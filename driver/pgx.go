package driver

import (
	sqldriver "database/sql/driver"
	"net"
	"reflect"
	"time"
)

// maxCleanup bounds the wait for a driver that closes in the background. pgx gives itself 15 s.
const maxCleanup = 20 * time.Second

// awaitCleanup waits until a connection of pgx is really closed. After a call that was cancelled pgx only marks it as
// closed; it asks the server to cancel, waits for the end and closes the socket in a goroutine of its own, and Close
// returns at once. A permit given back before that lets one connection more onto the server than the cap allows.
func awaitCleanup(conn sqldriver.Conn) {
	if done := cleanupDone(conn); done != nil {
		closedWithin(done, maxCleanup)
	}
}

// What follows reaches into a *stdlib.Conn without an import of pgx. For every other connection it finds nothing.

// cleanupDone is conn.Conn().PgConn().CleanupDone() of a closed connection.
func cleanupDone(conn sqldriver.Conn) <-chan struct{} {
	pg := pgConn(conn)
	if !pg.IsValid() {
		return nil
	}
	if closed := callMethod(pg.MethodByName("IsClosed")); !closed.IsValid() || closed.Kind() != reflect.Bool || !closed.Bool() {
		return nil
	}
	if done := callMethod(pg.MethodByName("CleanupDone")); done.IsValid() {
		c, _ := done.Interface().(chan struct{})
		return c
	}
	return nil
}

// pgxSocket is conn.Conn().PgConn().Conn(): the socket. When a context ends, pgx does no more than set a deadline in the
// past on it. The guard can do that by itself, so that the driver gets the caller's own context: deriving one from it
// costs a tenth of pgx's throughput, and so does giving pgx one to watch where the caller's cannot end.
func pgxSocket(conn sqldriver.Conn) net.Conn {
	pg := pgConn(conn)
	if !pg.IsValid() {
		return nil
	}
	if socket := callMethod(pg.MethodByName("Conn")); socket.IsValid() {
		c, _ := socket.Interface().(net.Conn)
		return c
	}
	return nil
}

// watchesByDeadline reports whether pgx has its default way to end a call whose context has ended, which is a deadline on
// the socket. A ConnConfig may name another, such as to ask the server to cancel. Or there may be somebody else who has to
// know when the caller's context ends: what is wrapped around pgx may wait by itself, and both that and a tracer may derive
// a context, from which pgx reads why its own read has failed.
func watchesByDeadline(conn sqldriver.Conn) bool {
	if structOf(conn).Type().PkgPath() != "github.com/jackc/pgx/v5/stdlib" {
		return false
	}
	config := pgxConfig(conn)
	if tracer := config.FieldByName("Tracer"); tracer.Kind() != reflect.Interface || !tracer.IsNil() {
		return false
	}
	pg := pgConn(conn)
	build := config.FieldByName("BuildContextWatcherHandler")
	if build.Kind() != reflect.Func || build.IsNil() {
		return false
	}
	if t := build.Type(); t.NumIn() != 1 || t.In(0) != pg.Type() || t.NumOut() != 1 || t.Out(0).Kind() != reflect.Interface {
		return false
	}
	handler := reflect.Indirect(build.Call([]reflect.Value{pg})[0].Elem())
	if handler.Kind() != reflect.Struct || handler.Type().Name() != "DeadlineContextWatcherHandler" {
		return false
	}
	delay := handler.FieldByName("DeadlineDelay")
	return delay.IsValid() && delay.IsZero()
}

// pgxConfig is conn.Conn().Config(), which is a copy; of any other connection an empty struct.
func pgxConfig(conn sqldriver.Conn) reflect.Value {
	if pgx := callMethod(reflect.ValueOf(conn).MethodByName("Conn")); pgx.IsValid() {
		if config := reflect.Indirect(callMethod(pgx.MethodByName("Config"))); config.Kind() == reflect.Struct {
			return config
		}
	}
	return reflect.ValueOf(struct{}{})
}

// pgConn is conn.Conn().PgConn(). (Methods are looked up by constant names, of which the linker knows that they stay.)
func pgConn(conn sqldriver.Conn) (pg reflect.Value) {
	if v := callMethod(reflect.ValueOf(conn).MethodByName("Conn")); v.IsValid() {
		pg = callMethod(v.MethodByName("PgConn"))
	}
	if pg.Kind() != reflect.Pointer {
		return reflect.Value{}
	}
	return pg
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
