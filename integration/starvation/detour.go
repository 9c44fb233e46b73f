package starvation

import (
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

var (
	_ networker = detour{}
	_ detourer  = detour{}
)

// detour is a way to a server through a network that can fail. It is there for
// the day that it does; on the others it would only cost time.
type detour struct {
	direct string // the server's DSN
	proxy  *testserver.Proxy
}

func newDetour(tb testing.TB, dsn string) detour {
	tb.Helper()
	return detour{dsn, testserver.NewProxy(tb, testserver.AddrOf(dsn))}
}

func (d detour) Detour() string        { return testserver.WithAddr(d.direct, d.proxy.Addr()) }
func (d detour) Disconnect(testing.TB) { d.proxy.Hang() }

// Reconnect resets what hung: a network that was away for seconds has forgotten
// its connections.
func (d detour) Reconnect(testing.TB) {
	d.proxy.Cut()
	d.proxy.Resume()
}
