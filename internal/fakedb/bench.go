package fakedb

import (
	"context"
	"database/sql"
	"testing"
)

// BenchExec measures Exec. What is compared with one another runs the same loop, whoever compares it.
func BenchExec(b *testing.B, db *sql.DB, ctx context.Context) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := db.ExecContext(ctx, "UPDATE accounts SET seen = now() WHERE id = 1"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchQueryRow measures QueryRow with its Scan.
func BenchQueryRow(b *testing.B, db *sql.DB, ctx context.Context) {
	b.ReportAllocs()
	for b.Loop() {
		if err := queryRow(db, ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchQueryRowParallel measures the same on every processor at once.
func BenchQueryRowParallel(b *testing.B, db *sql.DB, ctx context.Context) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := queryRow(db, ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func queryRow(db *sql.DB, ctx context.Context) error {
	var v int64
	return db.QueryRowContext(ctx, "SELECT id FROM accounts WHERE id = 1").Scan(&v)
}
