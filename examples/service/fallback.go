package main

import (
	"sync"
	"time"
)

// fallback is the last good value, for when there is no new one.
type fallback[T any] struct {
	mu    sync.Mutex // guards the fields below; held for a copy
	value T
	at    time.Time // zero: there is none yet

	now func() time.Time
}

func newFallback[T any]() *fallback[T] { return &fallback[T]{now: time.Now} }

// keep remembers a value, and returns since when it holds.
func (f *fallback[T]) keep(value T) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value, f.at = value, f.now()
	return f.at
}

// within returns the value if it is not older than age.
func (f *fallback[T]) within(age time.Duration) (value T, at time.Time, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.IsZero() || f.now().Sub(f.at) > age {
		return value, time.Time{}, false
	}
	return f.value, f.at, true
}
