package workload_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestUntaggedContextHasNoName(t *testing.T) {
	t.Parallel()
	if name, ok := workload.From(context.Background()); ok || name != "" {
		t.Fatalf("From(Background) = %q, %v", name, ok)
	}
}

func TestInnermostTagHolds(t *testing.T) {
	t.Parallel()
	outer := workload.With(context.Background(), workload.OLTP)
	inner := workload.With(outer, workload.Batch)
	if name, ok := workload.From(inner); !ok || name != workload.Batch {
		t.Errorf("inner: %q, %v", name, ok)
	}
	if name, ok := workload.From(outer); !ok || name != workload.OLTP {
		t.Errorf("outer: %q, %v", name, ok)
	}
}

func TestTagSurvivesDerivedContexts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(workload.With(context.Background(), workload.Reporting), time.Hour)
	defer cancel()
	if name, ok := workload.From(context.WithoutCancel(ctx)); !ok || name != workload.Reporting {
		t.Fatalf("From = %q, %v", name, ok)
	}
}

func TestInvalidNameIsCarriedAsItIs(t *testing.T) {
	t.Parallel()
	for _, bad := range []workload.Name{"", "No Such", "é"} {
		if name, ok := workload.From(workload.With(context.Background(), bad)); !ok || name != bad {
			t.Errorf("From(With(%q)) = %q, %v", bad, name, ok)
		}
	}
}

func TestValidNames(t *testing.T) {
	t.Parallel()
	for _, name := range []workload.Name{
		workload.OLTP, workload.Reporting, workload.Batch, workload.Admin,
		"a", "9", "tenant/eu-1.blue_green", "a-", workload.Name(strings.Repeat("z", 40)),
	} {
		if err := name.Validate(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestInvalidNamesAreRefusedWithValueAndBound(t *testing.T) {
	t.Parallel()
	for _, name := range []workload.Name{
		"", "OLTP", "-a", "_a", ".a", "/a", "a b", "a\x00", "é", "a:b", "a'b", workload.Name(strings.Repeat("z", 41)),
	} {
		err := name.Validate()
		if err == nil {
			t.Errorf("%q: accepted", name)
			continue
		}
		if msg := err.Error(); !strings.Contains(msg, "1 to 40 of a-z 0-9 . _ / -") || !strings.Contains(msg, "got ") {
			t.Errorf("%q: unclear: %v", name, err)
		}
	}
}

func TestErrorOfAnEndlessNameIsShort(t *testing.T) {
	t.Parallel()
	if err := workload.Name(strings.Repeat("z", 1<<16)).Validate(); len(err.Error()) > 200 {
		t.Fatalf("%d bytes", len(err.Error()))
	}
}

func FuzzValidateAgreesWithTheRule(f *testing.F) {
	f.Add("oltp")
	f.Add("-x")
	f.Add("A")
	f.Fuzz(func(t *testing.T, s string) {
		want := len(s) >= 1 && len(s) <= 40 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789._/-") == "" &&
			!strings.ContainsAny(s[:1], "._/-")
		for _, r := range s {
			want = want && strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789._/-", r)
		}
		if got := workload.Name(s).Validate() == nil; got != want {
			t.Fatalf("%q: valid %v, want %v", s, got, want)
		}
	})
}

func TestFromAllocatesNothing(t *testing.T) {
	ctx := workload.With(context.Background(), workload.Reporting)
	if n := testing.AllocsPerRun(100, func() { workload.From(ctx) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// BenchmarkFrom has its baseline beside it: the one look-up that no tag can do
// without.
func BenchmarkFrom(b *testing.B) {
	type other struct{}
	plain := context.WithValue(context.Background(), other{}, "x")
	tagged := workload.With(context.Background(), workload.Reporting)
	b.Run("baseline", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			plain.Value(other{})
		}
	})
	b.Run("tagged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			workload.From(tagged)
		}
	})
	b.Run("untagged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			workload.From(plain)
		}
	})
}
