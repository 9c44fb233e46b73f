package integration

import (
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
)

// BenchmarkTransactionBehindAPooler shows what SET LOCAL costs: a round trip per transaction.
func BenchmarkTransactionBehindAPooler(b *testing.B) {
	for _, tg := range postgresTargets {
		behind := pooled(b, tg, "default_pool_size=1")
		for _, mode := range []struct {
			name   string
			option partition.Option
		}{
			{"SetLocal", pooling},
			{"ClientOnly", partition.WithDialect(stmttimeout.ClientOnly())},
		} {
			b.Run(tg.name+"/"+mode.name, func(b *testing.B) {
				r := setup(b, behind, mode.option)
				for b.Loop() {
					if err := commit(r.db, "SELECT 1"); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
