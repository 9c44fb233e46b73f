package workload_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Tag once, where the work enters the service.
func ExampleWith() {
	tag := func(name workload.Name, next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			next(w, r.WithContext(workload.With(r.Context(), name)))
		}
	}
	report := func(_ http.ResponseWriter, r *http.Request) {
		name, ok := workload.From(r.Context())
		fmt.Println(name, ok)
	}
	tag(workload.Reporting, report)(nil, httptest.NewRequest(http.MethodGet, "/reports/42", nil))
	// Output: reporting true
}

// An untagged context says so.
func ExampleFrom() {
	_, ok := workload.From(context.Background())
	fmt.Println(ok)
	// Output: false
}

// Validate names that come from outside.
func ExampleName_Validate() {
	fmt.Println(workload.Name("tenant/eu-1").Validate())
	fmt.Println(workload.Name("Nightly Export").Validate())
	// Output:
	// <nil>
	// workload: name must be 1 to 40 of a-z 0-9 . _ / -, starting with a letter or digit, got "Nightly Export"
}
