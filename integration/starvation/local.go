package starvation

import (
	"runtime"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// local is a private server.
type local struct {
	kind, name, driver string
	start              func(testing.TB) *testserver.Server

	server *testserver.Server
	detour
}

// frozen is a local server that can be paused.
type frozen struct{ local }

var (
	_ networker  = local{}
	_ detourer   = local{}
	_ killer     = local{}
	_ stopper    = local{}
	_ replicator = local{}
	_ pauser     = frozen{}
)

// private starts l. A server is paused on Linux alone.
func private(tb testing.TB, l local) Server {
	tb.Helper()
	l.server = l.start(tb)
	l.detour = newDetour(tb, l.server.DSN)
	if runtime.GOOS == "linux" {
		return frozen{l}
	}
	return l
}

func (l local) Kind() string   { return l.kind }
func (l local) Name() string   { return l.name }
func (l local) Driver() string { return l.driver }
func (l local) DSN() string    { return l.server.DSN }

func (l local) Stop(testing.TB)              { l.server.Stop() }
func (l local) Kill(testing.TB)              { l.server.Kill() }
func (l local) Start(testing.TB)             { l.server.Start() }
func (l frozen) Pause(testing.TB)            { l.server.Pause() }
func (l frozen) Resume(testing.TB)           { l.server.Resume() }
func (l local) Replica(tb testing.TB) Server { return private(tb, l) }
