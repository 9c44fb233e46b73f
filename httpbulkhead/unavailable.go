package httpbulkhead

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// Unavailable answers a rejection (errors.Is(err, partition.ErrRejected)) with 503 Service Unavailable and returns true:
// the handler is done. Retry-After is the pool's own guess at when it has a permit again, in whole seconds rounded up, at
// least 1. The body is one line of plain text that says nothing of the pool; a handler with an error format of its own
// sets Retry-After from [partition.AcquireError.RetryAfter] itself.
//
// Of every other error, and of nil, it returns false and has written nothing: an unknown or missing tag is a bug (500), a
// statement timeout is 504, and a caller whose own context ended has probably gone.
//
// Call it before anything else is written: a status that is on its way cannot be taken back.
func Unavailable(w http.ResponseWriter, err error) bool {
	if !errors.Is(err, partition.ErrRejected) {
		return false
	}
	w.Header().Set("Retry-After", strconv.FormatInt(retryAfter(err), 10))
	http.Error(w, "busy, try again later", http.StatusServiceUnavailable)
	return true
}

// retryAfter is in whole seconds: 0 would invite the client to come back at once.
func retryAfter(err error) int64 {
	var refused *partition.AcquireError
	if !errors.As(err, &refused) {
		return 1
	}
	return max(1, int64((refused.RetryAfter()+time.Second-1)/time.Second))
}
