package report

import (
	"bytes"
	_ "embed" // the page's template
	"html/template"
	"io"
	"os"
	"path/filepath"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// WriteHTML writes the page with these reports, one after the other. It holds
// its own style and pictures, and forbids the browser to fetch anything.
func WriteHTML(w io.Writer, reports ...Report) error {
	return page.Execute(w, reports)
}

// WriteFile is WriteHTML into a file, which is there whole or not at all.
func WriteFile(path string, reports ...Report) error {
	var out bytes.Buffer
	if err := WriteHTML(&out, reports...); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // after the rename there is nothing of that name
	_, err = file.Write(out.Bytes())
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(file.Name(), 0o644)
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
