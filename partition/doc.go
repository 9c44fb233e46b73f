// Package partition replaces sql.Open for a service that does several kinds of work on one database, and gives every
// kind its own wall.
//
//	db, err := partition.Open("pgx", dsn)              // was: sql.Open("pgx", dsn)
//	ctx = workload.With(ctx, workload.Reporting)       // what runs under ctx runs in the reporting pool
//	rows, err := db.QueryContext(ctx, "SELECT ...")    // unchanged
//
// Open returns a plain *sql.DB. Behind it is a [Registry] of named pools, each with a hard cap on its connections, a
// bounded queue, an acquire timeout and a statement timeout. A query runs in the pool that its context names; a
// transaction and a *sql.Conn stay in the pool they began in. When a pool is full its callers are turned away, fast and
// with an [AcquireError]; the other pools do not notice.
//
// To see what walls would do before they do it, open with [WithMode]([Observe]), and ask [Registry.Plan].
//
// The statistics, sizes and switches of the pools are on the Registry, which [RegistryOf] finds. What (*sql.DB).Stats
// of the returned handle counts are virtual connections, which are as good as free.
package partition
