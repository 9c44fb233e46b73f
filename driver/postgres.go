package driver

import (
	sqldriver "database/sql/driver"
	"reflect"
)

// What follows reaches into the connections of pgx and lib/pq without importing them. For every other connection it finds
// nothing.

// BackendPID returns the process id that a PostgreSQL server gave the connection together with its cancellation key, 0
// where the driver does not tell.
func (s *Session) BackendPID() int64 {
	if pg := pgConn(s.raw.inner); pg.IsValid() {
		return pidOf(callMethod(pg.MethodByName("PID")))
	}
	pq := structOf(s.raw.inner)
	if pq.Type().PkgPath() != "github.com/lib/pq" {
		return 0
	}
	return pidOf(pq.FieldByName("pid"))
}

// pidOf reads the 32 bits of a process id, which lib/pq takes for signed: a pooler invents them.
func pidOf(v reflect.Value) int64 {
	switch {
	case v.IsValid() && v.CanInt():
		return int64(uint32(v.Int()))
	case v.IsValid() && v.CanUint():
		return int64(uint32(v.Uint()))
	}
	return 0
}

// unprepared is what stands before the arguments of a query that pgx is not to prepare: its QueryExecModeExec. By default
// it keeps each text prepared, for one round trip more, and a pooler may hand the second one to a server that has never
// heard of it.
func unprepared(conn sqldriver.Conn) []sqldriver.NamedValue {
	mode := pgxConfig(conn).FieldByName("DefaultQueryExecMode")
	if !mode.IsValid() || !mode.CanInt() || !mode.CanSet() {
		return nil
	}
	mode.SetInt(4)
	if name, ok := mode.Interface().(interface{ String() string }); !ok || name.String() != "exec" {
		return nil
	}
	return []sqldriver.NamedValue{{Ordinal: 1, Value: mode.Interface()}}
}
