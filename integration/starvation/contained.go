package starvation

import (
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/integration/containers"
	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// contained is a server in a container. The network that fails is a proxy before
// it, as before a private server: a container that is disconnected closes its
// connections to the client and refuses new ones, so that nothing hangs.
type contained struct {
	*containers.Server
	product string
	proxy   *testserver.Proxy
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
	return contained{s, product, testserver.NewProxy(tb, testserver.AddrOf(s.DSN()))}
}

func (c contained) Name() string { return c.product + " (container)" }

func (c contained) Detour() string               { return testserver.WithAddr(c.DSN(), c.proxy.Addr()) }
func (c contained) Disconnect(testing.TB)        { c.proxy.Hang() }
func (c contained) Replica(tb testing.TB) Server { return contain(tb, c.Kind(), c.product) }

// Reconnect resets what hung: a network that was away for seconds has forgotten
// its connections.
func (c contained) Reconnect(testing.TB) {
	c.proxy.Cut()
	c.proxy.Resume()
}
