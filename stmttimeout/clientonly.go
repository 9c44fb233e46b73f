package stmttimeout

import "context"

// clientOnly is a server without a setting: nothing is sent and nothing recognised.
type clientOnly struct{ name string }

var _ Dialect = clientOnly{}

// SQLite returns the dialect of SQLite, which has no statement timeout: the client guard alone holds the limit, and
// Settings are not sent.
func SQLite() Dialect { return clientOnly{"sqlite"} }

// ClientOnly returns the dialect of a server of which nothing is known: the client guard alone holds the limit, and
// Settings are not sent.
func ClientOnly() Dialect { return clientOnly{"client-only"} }

func (c clientOnly) Name() string { return c.name }

// Setup asks nothing of the server. A lock timeout and the like are the DSN's business here.
func (c clientOnly) Setup(_ context.Context, _ Session, want Settings) (Applied, error) {
	a := Applied{Enforcement: EnforcedByClient}
	for _, asked := range []struct {
		what string
		is   bool
	}{
		{"IdleInTransactionTimeout", want.IdleInTransactionTimeout > 0},
		{"LockTimeout", want.LockTimeout > 0},
		{"ReadOnly", want.ReadOnly},
	} {
		if asked.is {
			a.Warnings = append(a.Warnings, asked.what+" is not set on the server: the "+c.name+" dialect has no setting for it")
		}
	}
	return a, nil
}

func (clientOnly) Verdict(error) Verdict { return NotTimeout }

func (clientOnly) Inspect(string) Traits { return 0 }
