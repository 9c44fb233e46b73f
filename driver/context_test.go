package driver

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
)

type key struct{}

// A driver that watches its context (pgx, lib/pq) must not start a goroutine per call because of ours.
func TestLentContextIsOneThatTheStandardLibraryKnows(t *testing.T) {
	life, end := context.WithCancel(context.Background())
	p := &Physical{life: life}
	caller := context.WithValue(context.Background(), key{}, "value")
	ctx, cancel := p.derive(caller)
	if cancel != nil {
		t.Error("there is something to release")
	}
	if ctx.Value(key{}) != "value" {
		t.Error("the caller's values are gone")
	}
	before := runtime.NumGoroutine()
	fired := make(chan struct{})
	for range 100 {
		_, stop := context.WithCancel(ctx)
		defer stop()
	}
	context.AfterFunc(ctx, func() { close(fired) })
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines were started", n-before)
	}
	end()
	<-fired
}

func TestCancellableCallersGetAContextOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Physical{life: t.Context()}
		caller, cancel := context.WithCancel(t.Context())
		ctx, release := p.derive(caller)
		defer release()
		cancel()
		<-ctx.Done()
	})
}

// uncomparable is a context that panics when it is compared with another of its kind.
type uncomparable struct {
	context.Context
	_ []int
}

func TestContextsThatCannotBeComparedAreNotTheSame(t *testing.T) {
	t.Parallel()
	c := uncomparable{Context: context.Background()}
	if same(c, c) {
		t.Error("they are")
	}
	if !same(context.Background(), context.Background()) || same(t.Context(), context.Background()) {
		t.Error("others are told apart wrongly")
	}
}
