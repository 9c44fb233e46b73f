package debugpage_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/debugpage"
	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// browserTime is more than a browser needs on a machine that is busy with other tests.
const browserTime = 3 * time.Minute

// chromium is a browser that shows nothing, ended with ctx. The test is skipped where there is none.
func chromium(t *testing.T, ctx context.Context, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds to start")
	}
	path := testserver.Program(t, "chromium", "chromium")
	cmd := exec.CommandContext(ctx, path, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--user-data-dir=" + profile(t),
	}, args...)...)
	endsWhole(cmd)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// profile is no t.TempDir: what a browser left behind is no failure of the test.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "debugpage")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// browse runs it to its end and returns what it printed.
func browse(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), browserTime)
	defer cancel()
	out, err := chromium(t, ctx, args...).Output()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatalf("chromium: %v", err)
	}
	return string(out)
}

var tags = regexp.MustCompile(`<[^>]*>`)

// text is what the browser shows, each run of white space as one blank.
func text(dom string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(dom, " "))), " ")
}

// Pool oltp stands still, full and with a queue; batch goes on working while the browser looks.
func TestBrowserShowsTheNumbersOfTheRegistryUnderLoad(t *testing.T) {
	t.Parallel()
	db, reg := setup(t, partition.WithPool(workload.OLTP, partition.PoolConfig{
		MaxOpenConns: 3, MaxWaiting: 2, AcquireTimeout: 10 * time.Minute, StatementTimeout: partition.NoTimeout}))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range 5 {
		all.Go(func() { db.ExecContext(workload.With(ctx, workload.OLTP), "hang") })
	}
	p, _ := reg.Pool(workload.OLTP)
	for p.Stats().Waiting < 2 {
		time.Sleep(time.Millisecond)
	}
	for range 7 {
		db.ExecContext(oltp, "ok") // the queue is full
	}
	all.Go(func() {
		for ctx.Err() == nil {
			db.ExecContext(workload.With(ctx, workload.Batch), "sleep 1ms")
		}
	})

	batch, _ := reg.Pool(workload.Batch)
	server := httptest.NewServer(debugpage.Handler(reg))
	defer server.Close()
	before := batch.Stats().Acquired
	shown := text(browse(t, "--dump-dom", server.URL+"/debug/bulkhead/"))
	after := batch.Stats().Acquired

	for _, want := range []string{
		"3 of 3 in use, 0 idle, 0 free; at most 3 so far. Queue: 2 of 2.",
		"Acquires: 3. Rejections: 7 queue full, 0 acquire timeout, 0 paused",
		"oltp statement running",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in %s", want, shown)
		}
	}
	m := regexp.MustCompile(`Acquires: (\d+)`).FindStringSubmatch(shown[strings.Index(shown, " batch "):])
	if n, err := strconv.ParseUint(m[1], 10, 64); err != nil || n <= before || n > after {
		t.Errorf("%d acquires shown, between %d and %d", n, before, after)
	}
}

func TestPageRefreshesItselfInABrowser(t *testing.T) {
	t.Parallel()
	_, reg := setup(t)
	ctx, cancel := context.WithTimeout(t.Context(), browserTime)
	defer cancel()
	var requests atomic.Int64
	page := debugpage.Handler(reg)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		page.ServeHTTP(w, req)
		if requests.Add(1) == 3 {
			cancel()
		}
	}))
	defer server.Close()
	chromium(t, ctx, "--remote-debugging-port=0", server.URL).Run() // until it is ended
	if n := requests.Load(); n < 3 {
		t.Errorf("asked for %d times", n)
	}
}

// hostile would take the page over if any of it were more than text.
const hostile = `</title></style><script>document.title="owned"</script><img src="/owned" onerror='document.title="owned"'>"'><b x='{{.}}`

// hostileServer answers with that, wherever the page repeats a server's words.
type hostileServer struct{ stmttimeout.Dialect }

func (hostileServer) Setup(context.Context, stmttimeout.Session, stmttimeout.Settings) (stmttimeout.Applied, error) {
	return stmttimeout.Applied{Enforcement: hostile, Session: "1"}, nil
}

func (hostileServer) Control(context.Context, stmttimeout.Session) error { return nil }

func (hostileServer) End(context.Context, stmttimeout.Session, string, bool) (bool, error) {
	return false, errors.New(hostile)
}

// The policy against scripts is taken off, so that escaping alone must hold; and what it holds back does run where it is
// no text.
func TestHostileTextDoesNotRunInABrowser(t *testing.T) {
	t.Parallel()
	db, reg := setup(t, partition.WithName(hostile), partition.WithFallback(workload.OLTP),
		partition.WithDialect(hostileServer{stmttimeout.ClientOnly()}),
		partition.WithPool(workload.OLTP, partition.PoolConfig{StatementTimeout: 10 * time.Millisecond}))
	tagged := workload.With(t.Context(), hostile)
	conn, err := db.Conn(tagged)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	db.ExecContext(tagged, hostile) // no statement at all
	db.ExecContext(tagged, "hang")
	p, _ := reg.Pool(workload.OLTP)
	for p.Stats().EndProblem == "" {
		if t.Context().Err() != nil {
			t.Fatal("the server refused to end nothing")
		}
		time.Sleep(time.Millisecond)
	}

	var owned atomic.Int64
	page := debugpage.Handler(reg)
	mux := http.NewServeMux()
	mux.HandleFunc("/owned", func(http.ResponseWriter, *http.Request) { owned.Add(1) })
	mux.HandleFunc("/unescaped", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<!DOCTYPE html><title>free</title>"+hostile)
	})
	mux.HandleFunc("/page", func(w http.ResponseWriter, req *http.Request) {
		rec := httptest.NewRecorder()
		page.ServeHTTP(rec, req)
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		io.Copy(w, rec.Body)
	})
	server := httptest.NewServer(mux)
	defer server.Close()

	dom := browse(t, "--dump-dom", server.URL+"/page")
	if owned.Load() != 0 || strings.Contains(dom, "<script") || strings.Contains(dom, "<img") || strings.Contains(dom, "<b ") {
		t.Errorf("it runs: %s", dom)
	}
	// Title, headline, the holder's tag, what enforces the timeout, and why statements cannot be ended.
	if n := strings.Count(html.UnescapeString(dom), hostile); n < 5 {
		t.Errorf("stands there %d times: %s", n, dom)
	}
	if dom := browse(t, "--dump-dom", server.URL+"/unescaped"); owned.Load() == 0 || !strings.Contains(dom, "<title>owned</title>") {
		t.Errorf("the text is not hostile at all: %s", dom)
	}
}

func TestPageIsDarkWhereTheReaderWantsIt(t *testing.T) {
	t.Parallel()
	_, reg := setup(t)
	server := httptest.NewServer(debugpage.Handler(reg))
	defer server.Close()
	for scheme, want := range map[string]color.NRGBA{"0": {0x0d, 0x11, 0x17, 0xff}, "1": {0xff, 0xff, 0xff, 0xff}} {
		file := filepath.Join(t.TempDir(), "page.png")
		browse(t, "--blink-settings=preferredColorScheme="+scheme, "--screenshot="+file, "--window-size=900,600", server.URL+"/?refresh=off")
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := color.NRGBAModel.Convert(picture.At(2, 2)); got != want {
			t.Errorf("scheme %s: the page is %v, want %v", scheme, got, want)
		}
	}
}
