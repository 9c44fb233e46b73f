package stmttimeout

import (
	"context"
	"testing"
	"time"
)

func TestContextWithoutLimitHasNone(t *testing.T) {
	t.Parallel()
	if d, ok := From(t.Context()); ok || d != 0 {
		t.Errorf("From = %v, %v", d, ok)
	}
}

func TestNestedLimitsKeepTheSmallest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		limits []time.Duration
		want   time.Duration
	}{
		{"one", []time.Duration{5 * time.Second}, 5 * time.Second},
		{"tightened", []time.Duration{5 * time.Second, time.Second}, time.Second},
		{"not loosened", []time.Duration{time.Second, 5 * time.Second}, time.Second},
		{"the same again", []time.Duration{time.Second, time.Second}, time.Second},
		{"smallest in the middle", []time.Duration{3 * time.Second, time.Nanosecond, 2 * time.Second}, time.Nanosecond},
		{"zero changes nothing", []time.Duration{time.Second, 0}, time.Second},
		{"negative changes nothing", []time.Duration{time.Second, -1}, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			for _, d := range tt.limits {
				ctx = With(ctx, d)
			}
			if got, ok := From(ctx); !ok || got != tt.want {
				t.Errorf("From = %v, %v, want %v", got, ok, tt.want)
			}
		})
	}
}

func TestLimitThatTightensNothingReturnsTheSameContext(t *testing.T) {
	t.Parallel()
	outer := With(t.Context(), time.Second)
	for _, d := range []time.Duration{0, -1, time.Second, time.Minute} {
		if With(outer, d) != outer {
			t.Errorf("With(ctx, %v) made a new context", d)
		}
	}
	if bare := t.Context(); With(bare, 0) != bare {
		t.Error("With(ctx, 0) made a new context")
	}
}

func TestLimitSetsNoDeadline(t *testing.T) {
	t.Parallel()
	if _, has := With(context.Background(), time.Second).Deadline(); has {
		t.Error("the limit of a statement became a deadline of the context")
	}
}

func TestFromAllocatesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(With(context.Background(), time.Second))
	defer cancel()
	if n := testing.AllocsPerRun(100, func() { From(ctx) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFrom(b *testing.B) {
	type key struct{}
	bare, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "request"))
	defer cancel()
	limited, cancelLimited := context.WithCancel(With(bare, time.Second))
	defer cancelLimited()
	for _, bb := range []struct {
		name string
		ctx  context.Context
	}{{"none", bare}, {"limited", limited}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				From(bb.ctx)
			}
		})
		b.Run(bb.name+"/baseline=Value", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bb.ctx.Value(limitKey{})
			}
		})
	}
}
