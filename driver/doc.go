// Package driver holds the virtual connection: a database/sql driver connection that owns nothing, and binds to a
// physical one for as long as database/sql has it checked out.
//
// database/sql tells a connection three things that matter here:
//
//   - Connector.Connect(ctx) and SessionResetter.ResetSession(ctx): you are checked out, and this is the context of
//     who wants you. There a Conn asks its Router for a Physical connection and binds to it.
//   - every other call: it goes straight to the bound Physical.
//   - Validator.IsValid and Close: you are returned, or thrown away. There the Conn unbinds.
//
// So one *sql.DB can serve several pools, chosen by context, and everything above it stays as it is. The package
// knows nothing of pools or workloads: a Router leads a checkout to a connection, and a Lender stands behind each
// connection with the limits that hold for it.
//
// Two more things live here because every call passes through them: the guard, a deadline on the call itself that
// costs no timer per call, and the cache of really prepared statements, by which one *sql.Stmt works in every pool.
//
// It is meant for package partition. Its exported names may change with any release.
package driver
