package httpbulkhead

import (
	"fmt"
	"net/http"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Tag returns middleware that tags every request with name. It panics if name is not valid, as ServeMux does on a bad
// pattern: while the routes are set up is the time to learn of it. Whether there is a pool of that name only the handle
// knows; what it answers if not is partition.ErrUnknownWorkload.
//
// The innermost tag holds, so that a route's own overrides that of the whole mux.
func Tag(name workload.Name) func(http.Handler) http.Handler {
	if err := name.Validate(); err != nil {
		panic(fmt.Sprintf("httpbulkhead: Tag: %v", err))
	}
	return TagFunc(func(*http.Request) workload.Name { return name })
}

// TagFunc returns middleware that tags each request with the name that choose returns for it. It panics if choose is
// nil.
//
// An empty name leaves the context as it was: untagged, or with the tag that is there already. Every other name is
// passed on unseen: one that is not valid, or that no pool has, comes back from the handle as
// partition.ErrUnknownWorkload, and partition.WithFallback can give it a pool.
//
// Around a ServeMux choose sees neither r.Pattern nor path values, since the mux has not matched yet; and as every
// middleware that calls WithContext, this one hands on a copy of the request, so that what the mux then writes into
// it (r.Pattern, for metrics) is not seen outside. Inside, around the handlers of single routes, all of it is there.
//
// A choose that returns what a header says lets every client choose its pool.
func TagFunc(choose func(*http.Request) workload.Name) func(http.Handler) http.Handler {
	if choose == nil {
		panic("httpbulkhead: TagFunc: the function is nil")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name := choose(r); name != "" {
				r = r.WithContext(workload.With(r.Context(), name))
			}
			next.ServeHTTP(w, r)
		})
	}
}
