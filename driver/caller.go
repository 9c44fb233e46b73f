package driver

import (
	"runtime"
	"slices"
	"strings"
)

// calledBy reports whether a function of database/sql is among the callers, at most so many up, and nearer than any of
// others. What database/sql does with an answer depends on that, and only the stack tells. It is slow.
func calledBy(function string, within int, others ...string) bool {
	pcs := make([]uintptr, within)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, function) {
			return true
		}
		if !more || slices.ContainsFunc(others, func(other string) bool { return strings.HasSuffix(f.Function, other) }) {
			return false
		}
	}
}
