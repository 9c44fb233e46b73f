// Package workload names the kinds of work that one service gives to one
// database, and carries that name on a context.
//
// The name is what package partition selects a pool by. Set it once, where a
// piece of work enters the service (an HTTP middleware, a job's runner), and
// everything below that uses the context runs in that workload's pool:
//
//	ctx = workload.With(ctx, workload.Reporting)
//	rows, err := db.QueryContext(ctx, "SELECT ...")
//
// The innermost With holds. A context without a name is untagged: what becomes
// of it is the registry's choice (its default pool, or a refusal).
//
// The package imports nothing but the standard library and knows nothing of
// databases, so that code which only tags needs nothing else.
package workload
