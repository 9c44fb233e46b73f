package debugpage

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// Handler serves the page of one registry, also when that is closed. It answers GET and HEAD, on every path that it is
// mounted on. A request takes each pool's lock as Stats and Holders do, and does no I/O on the database.
//
// The plots begin with the handler: make it when the service starts. Until the registry is closed it reads each pool's
// statistics every two seconds, and keeps the last five minutes of them: 2 KB for each pool, however long it runs.
func Handler(r *partition.Registry) http.Handler {
	past := newHistory(r)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		query := req.URL.Query()
		body, kind, err := render(look(past), query.Get("format") == "json", query.Get("refresh") != "off")
		if err != nil {
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		w.Write(body)
	})
}

func render(v view, asJSON, refresh bool) (body []byte, kind string, err error) {
	if asJSON {
		body, err = json.Marshal(v)
		return body, "application/json", err
	}
	var b bytes.Buffer
	err = page.Execute(&b, struct {
		view
		Refresh bool
	}{v, refresh})
	return b.Bytes(), "text/html; charset=utf-8", err
}
