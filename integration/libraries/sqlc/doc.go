// Package sqlc is what sqlc generates for database/sql from queries.sql.
package sqlc

//go:generate go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate
