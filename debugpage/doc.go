// Package debugpage shows the pools of a registry as they are now, on one page for whoever is on call:
//
//	reg, _ := partition.RegistryOf(db)
//	mux.Handle("/debug/bulkhead/", debugpage.Handler(reg))
//
// Each pool is a bar of its permits, with its queue, its counters, its settings and who holds its connections. The page
// reloads itself every two seconds, except with ?refresh=off; ?format=json is the same as JSON, times in seconds.
//
// Nothing here changes anything, and nothing is kept between requests. The page has neither data sources nor statements
// nor their arguments on it, but the names of pools, the server's words where it refuses to end statements, and functions
// where LeakStacks is set: mount it where net/http/pprof would be, not on a public mux.
package debugpage
