// Package httpbulkhead is where HTTP meets the pools: middleware that tags the requests of a route with their workload,
// and the answer to a request whose pool is full.
//
//	mux.Handle("POST /login", login) // untagged: oltp
//	mux.Handle("GET /report", httpbulkhead.Tag(workload.Reporting)(report))
//
// In a handler:
//
//	if err := query(r.Context()); httpbulkhead.Unavailable(w, err) {
//		return // it was a rejection, and is answered: 503 with Retry-After
//	} else if err != nil { … }
//
// Nothing here reads a header, a cookie or a query parameter. A client that may choose its pool chooses the one with
// the longest timeouts: take the workload from the route, or from who the client is.
package httpbulkhead
