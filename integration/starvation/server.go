package starvation

import "testing"

// Server is a database server to run on. The faults that can be done to it are
// methods that it may have besides, each of a testing.TB: Pause and Resume, Stop
// and Start, Kill and Start, Disconnect and Reconnect, and Replica, which returns
// another Server. A day whose fault is missing is left out, which is said in the
// log and on the page.
type Server interface {
	Kind() string   // "postgres", "mysql" or "mariadb"
	Name() string   // for the names of tests and files
	Driver() string // "pgx", "postgres" or "mysql"

	// DSN of a user who may create a database and see and end the sessions
	// in it: a URL, or what go-sql-driver/mysql takes. It stays the same
	// through every fault.
	DSN() string
}

// pauser freezes the server while its sockets stay open.
type pauser interface {
	Pause(tb testing.TB)
	Resume(tb testing.TB)
}

// stopper shuts the server down in good order. Start returns once it serves.
type stopper interface {
	Stop(tb testing.TB)
	Start(tb testing.TB)
}

// killer ends the server as a crash does.
type killer interface {
	Kill(tb testing.TB)
	Start(tb testing.TB)
}

// networker has the network swallow what is sent, both ways.
type networker interface {
	Disconnect(tb testing.TB)
	Reconnect(tb testing.TB)
}

// detourer is a networker whose network is not on the way of its DSN, but on the
// way of this one.
type detourer interface {
	Detour() (dsn string)
}

// replicator has a second server of the same kind, which is gone when the test
// is over. No data is replicated: the day needs none.
type replicator interface {
	Replica(tb testing.TB) Server
}

// can reports whether s has the fault F.
func can[F any](s Server) bool {
	_, ok := s.(F)
	return ok
}
