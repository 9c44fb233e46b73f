package driver

import (
	"runtime"
	"strings"
)

// calledBy reports whether a function of database/sql is among the callers, at most so many up. What it means to do with an
// answer only the stack tells, so this is for where that makes a difference, and off the way of ordinary calls.
func calledBy(function string, within int) bool {
	pcs := make([]uintptr, within)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, function) {
			return true
		}
		if !more {
			return false
		}
	}
}
