package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
)

// BenchmarkTransactionBehindAPooler shows what SET LOCAL costs: a round trip per transaction. The two take turns, and their
// medians are compared, so that a busy machine is so for both.
func BenchmarkTransactionBehindAPooler(b *testing.B) {
	for _, tg := range postgresTargets {
		b.Run(tg.name, func(b *testing.B) {
			behind := pooled(b, tg, "default_pool_size=1")
			with, without := setup(b, behind, pooling), setup(b, behind, partition.WithDialect(stmttimeout.ClientOnly()))
			var took [2][]time.Duration
			for b.Loop() {
				for i, r := range []*rig{with, without} {
					began := time.Now()
					if err := commit(r.db, "SELECT 1"); err != nil {
						b.Fatal(err)
					}
					took[i] = append(took[i], time.Since(began))
				}
			}
			for i, mode := range []string{"set-local-µs/tx", "client-only-µs/tx"} {
				slices.Sort(took[i])
				b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds()), mode)
			}
		})
	}
}
