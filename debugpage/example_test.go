package debugpage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/sqlbulkhead/sqlbulkhead/debugpage"
	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

func Example() {
	db, err := partition.OpenDB(fakedb.New().Connector()) // partition.Open on your server
	if err != nil {
		panic(err)
	}
	defer db.Close()
	reg, _ := partition.RegistryOf(db)

	private := http.NewServeMux() // where net/http/pprof is
	private.Handle("/debug/bulkhead/", debugpage.Handler(reg))

	w := httptest.NewRecorder()
	private.ServeHTTP(w, httptest.NewRequest("GET", "/debug/bulkhead/", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
