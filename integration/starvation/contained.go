package starvation

import (
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/integration/containers"
)

// contained is a server in a container. The network that fails is a proxy before
// it, as before a private server: a container that is disconnected closes its
// connections to the client and refuses new ones, so that nothing hangs.
type contained struct {
	*containers.Server
	product string
	detour
}

var (
	_ pauser     = contained{}
	_ stopper    = contained{}
	_ killer     = contained{}
	_ networker  = contained{}
	_ detourer   = contained{}
	_ replicator = contained{}
)

func contain(tb testing.TB, kind, product string) Server {
	tb.Helper()
	s := containers.Start(tb, kind)
	return contained{s, product, newDetour(tb, s.DSN())}
}

func (c contained) Name() string                 { return c.product + " (container)" }
func (c contained) Replica(tb testing.TB) Server { return contain(tb, c.Kind(), c.product) }

// Disconnect and Reconnect are the detour's, where the container has its own.

func (c contained) Disconnect(tb testing.TB) { c.detour.Disconnect(tb) }
func (c contained) Reconnect(tb testing.TB)  { c.detour.Reconnect(tb) }
