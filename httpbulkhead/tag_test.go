package httpbulkhead_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/httpbulkhead"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// tagOf sends r through the middleware and returns the tag that the handler behind it saw, "" for none.
func tagOf(t *testing.T, r *http.Request, through ...func(http.Handler) http.Handler) (seen workload.Name) {
	t.Helper()
	called := false
	var h http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		called = true
		seen, _ = workload.From(r.Context())
	})
	for _, m := range through {
		h = m(h)
	}
	h.ServeHTTP(httptest.NewRecorder(), r)
	if !called {
		t.Fatal("the handler was not called")
	}
	return seen
}

func always(name workload.Name) func(*http.Request) workload.Name {
	return func(*http.Request) workload.Name { return name }
}

func get(ctx context.Context) *http.Request {
	return httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
}

func TestTagReachesTheHandlerAndNotTheCallersRequest(t *testing.T) {
	t.Parallel()
	r := get(t.Context())
	if got := tagOf(t, r, httpbulkhead.Tag(workload.Reporting)); got != workload.Reporting {
		t.Errorf("the handler saw %q", got)
	}
	if name, ok := workload.From(r.Context()); ok {
		t.Errorf("the request outside is tagged %q", name)
	}
}

func TestInnermostTagHolds(t *testing.T) {
	t.Parallel()
	got := tagOf(t, get(t.Context()), httpbulkhead.Tag(workload.Batch), httpbulkhead.Tag(workload.OLTP))
	if got != workload.Batch {
		t.Errorf("got %q", got)
	}
}

func TestEmptyNameLeavesTheContextAsItWas(t *testing.T) {
	t.Parallel()
	none := httpbulkhead.TagFunc(always(""))
	if got := tagOf(t, get(t.Context()), none); got != "" {
		t.Errorf("an untagged request became %q", got)
	}
	tagged := get(workload.With(t.Context(), workload.Batch))
	if got := tagOf(t, tagged, none); got != workload.Batch {
		t.Errorf("batch became %q", got)
	}
}

func TestInvalidNameOfATagPanicsWhileRoutesAreSetUp(t *testing.T) {
	t.Parallel()
	for _, name := range []workload.Name{"", "Reports", "a b", workload.Name(strings.Repeat("x", 41))} {
		message := panicOf(func() { httpbulkhead.Tag(name) })
		if !strings.HasPrefix(message, "httpbulkhead: Tag: workload: name must be") {
			t.Errorf("%q: %q", name, message)
		}
	}
	if message := panicOf(func() { httpbulkhead.TagFunc(nil) }); !strings.Contains(message, "TagFunc") {
		t.Errorf("nil function: %q", message)
	}
}

func panicOf(f func()) (message string) {
	defer func() { message, _ = recover().(string) }()
	f()
	return ""
}

func TestNothingThatAClientSendsTagsARequest(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?workload=admin&tag=admin", nil)
	for _, header := range []string{"Workload", "X-Workload", "Sqlbulkhead-Workload", "Tag", "Baggage", "Cookie"} {
		r.Header.Set(header, "workload=admin")
	}
	if got := tagOf(t, r, httpbulkhead.TagFunc(always(""))); got != "" {
		t.Errorf("got %q", got)
	}
	if got := tagOf(t, r, httpbulkhead.Tag(workload.OLTP)); got != workload.OLTP {
		t.Errorf("got %q", got)
	}
}
