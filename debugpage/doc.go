// Package debugpage shows the pools of a registry as they are now and in the last five minutes, on one page for whoever is
// on call:
//
//	reg, _ := partition.RegistryOf(db)
//	mux.Handle("/debug/bulkhead/", debugpage.Handler(reg))
//
// Each pool is a bar of its permits, with small plots of what was in use, waiting and rejected, its counters, its settings
// and who holds its connections. The page reloads itself every two seconds, except with ?refresh=off; it needs no script and
// nothing from elsewhere. ?format=json is the same as JSON, times in seconds.
//
// Nothing here changes anything. What is kept for the plots is as large after a year as after five minutes. The page has
// neither data sources nor statements nor their arguments on it, but the names of pools, the server's words where it refuses
// to end statements, and functions where LeakStacks is set: mount it where net/http/pprof would be, not on a public mux.
package debugpage
