package stmttimeout

import (
	"context"
	"sync/atomic"
	"time"
)

// limitKey is the context key of the limit. It has no size, so that looking it up allocates nothing.
type limitKey struct{}

// used: some context carries a limit. To find that one does not takes a look at each of its parents.
var used atomic.Bool

// With returns a context under which each statement may run for at most d.
//
// It tightens and never loosens: under nested calls the smallest d holds, and a pool's own statement timeout holds where
// it is smaller still. A d of zero or less leaves ctx as it was; there is no value that lifts a limit.
//
// The limit is one of each statement, not of the context: it starts anew with every call, and it has nothing to do with
// the context's own deadline, which holds as ever. The client enforces it, so that a statement which exceeds it costs its
// connection. A context given to BeginTx limits BEGIN alone: the transaction's statements have their own contexts.
func With(ctx context.Context, d time.Duration) context.Context {
	if d <= 0 {
		return ctx
	}
	if outer, ok := From(ctx); ok && outer <= d {
		return ctx
	}
	used.Store(true)
	return context.WithValue(ctx, limitKey{}, d)
}

// From returns the limit that ctx puts on each statement, which is always positive, and whether there is one. It costs
// one look-up in ctx, once [With] was used in the program.
func From(ctx context.Context) (time.Duration, bool) {
	if !used.Load() {
		return 0, false
	}
	d, ok := ctx.Value(limitKey{}).(time.Duration)
	return d, ok
}
