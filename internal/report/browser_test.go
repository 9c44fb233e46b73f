package report

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// browser finds Chromium, or skips the test.
func browser(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes its time")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no browser here: install the Debian package chromium")
	return ""
}

// measure has the browser write into the page's title how wide the page is, and
// how many marks and plots it has really drawn. The page's policy forbids
// scripts, so that goes first.
const measure = `<script>
const drawn = s => [...document.querySelectorAll(s)].filter(e => e.getBoundingClientRect().width > 50).length;
document.title = "wide " + document.documentElement.scrollWidth + " of " + innerWidth +
	", plots " + drawn("figure svg") + ", served " + drawn("figure .served") + ", failed " + drawn("figure .failed");
</script>`

func TestBrowserDrawsThePageWithinItsWindow(t *testing.T) {
	t.Parallel()
	chromium := browser(t)
	var page bytes.Buffer
	if err := WriteHTML(&page, sample("PostgreSQL 15")); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(page.String(), `http-equiv="Content-Security-Policy"`, `name="none"`, 1)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(text+measure), 0o644); err != nil {
		t.Fatal(err)
	}
	got := dump(t, chromium, path)
	if want := "<title>wide 600 of 600, plots 2, served 2, failed 1</title>"; !strings.Contains(got, want) {
		title, _, _ := strings.Cut(got, "</title>")
		t.Errorf("got %s, want %s", title[max(0, len(title)-100):], want)
	}
}

// dump returns the document as the browser has it after it was laid out.
func dump(t *testing.T, chromium, path string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--user-data-dir="+t.TempDir(), "--window-size=600,900", "--dump-dom", "file://"+path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", chromium, err)
	}
	return string(out)
}
