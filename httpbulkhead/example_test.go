package httpbulkhead_test

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/sqlbulkhead/sqlbulkhead/httpbulkhead"
	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// openShop is partition.Open on your server.
func openShop() *sql.DB {
	db, err := partition.OpenDB(fakedb.New(fakedb.WithoutLog()).Connector(),
		partition.WithDialect(stmttimeout.ClientOnly()))
	if err != nil {
		panic(err)
	}
	return db
}

func Example() {
	db := openShop()
	defer db.Close()
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := db.ExecContext(r.Context(), "ok")
		switch {
		case httpbulkhead.Unavailable(w, err): // this pool is full: answered
		case err != nil:
			http.Error(w, "internal error", http.StatusInternalServerError)
		default:
			io.WriteString(w, "done")
		}
	})
	mux := http.NewServeMux()
	mux.Handle("/login", page) // untagged: oltp
	mux.Handle("/report", httpbulkhead.Tag(workload.Reporting)(page))

	reg, _ := partition.RegistryOf(db)
	reports, _ := reg.Pool(workload.Reporting)
	reports.Pause() // an operator's switch
	for _, path := range []string{"/login", "/report"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Printf("%s %d, Retry-After %q\n", path, w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// /login 200, Retry-After ""
	// /report 503, Retry-After "1"
}

func ExampleTagFunc() {
	byPath := httpbulkhead.TagFunc(func(r *http.Request) workload.Name {
		switch {
		case strings.HasPrefix(r.URL.Path, "/export/"), strings.HasPrefix(r.URL.Path, "/dashboard/"):
			return workload.Reporting
		case strings.HasPrefix(r.URL.Path, "/webhook/"):
			return "webhooks"
		}
		return "" // the handle's default
	})
	service := byPath(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		name, tagged := workload.From(r.Context())
		fmt.Printf("%s %q %v\n", r.URL.Path, name, tagged)
	}))
	for _, path := range []string{"/export/orders", "/webhook/payments", "/login"} {
		service.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	// Output:
	// /export/orders "reporting" true
	// /webhook/payments "webhooks" true
	// /login "" false
}
