package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// rig is a watcher of a file, and what it has logged.
type rig struct {
	*testing.T
	*watcher
	text *bytes.Buffer
}

// setup follows path, which holds a configuration.
func setup(t *testing.T, path string) *rig {
	t.Helper()
	var text bytes.Buffer
	w := &watcher{path: path, log: slog.New(slog.NewTextHandler(&text, nil))}
	config, err := w.load()
	if err != nil {
		t.Fatal(err)
	}
	db, err := partition.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "db"), partition.WithConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	w.registry, _ = partition.RegistryOf(db)
	return &rig{t, w, &text}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wants fails the test unless reports have so many connections, and so many lines with that in them were logged since the
// last time.
func (r *rig) wants(size, lines int, saying string) {
	r.Helper()
	if got := r.sizes()[workload.Reporting]; got != size {
		r.Errorf("reports have %d connections, want %d", got, size)
	}
	if all, said := strings.Count(r.text.String(), "\n"), strings.Count(r.text.String(), saying); all != lines || said < lines {
		r.Errorf("want %d lines with %q, got:\n%s", lines, saying, r.text)
	}
	r.text.Reset()
}

func TestChangedFileIsAppliedAndABadOneRefusedInOneLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pools.json")
	write(t, path, `{"pools": {"reporting": {"max_open_conns": 2}}}`)
	r := setup(t, path)
	r.look()
	r.wants(2, 0, "")
	write(t, path, `{"pools": {"reporting": {"max_open_conns": 4}}}`)
	r.look()
	r.look()
	r.wants(4, 1, "applied")
	for bad, says := range map[string]string{
		`{"pools": {"reporting": {"max_open_conns": 5}}`:               "refused",       // half of it is written
		`{"pools": {"reporting": {"max_open_cons": 5}}}`:               "max_open_cons", // a slip
		`{"budget": 4, "pools": {"reporting": {"max_open_conns": 5}}}`: "budget of 4",
		`{"default": "batch"}`:                                         "Default",
	} {
		write(t, path, bad)
		r.look()
		r.look()
		r.wants(4, 1, says)
	}
	os.Remove(path)
	r.look()
	r.look()
	r.wants(4, 1, "cannot be read")
	write(t, path, `{}`)
	r.look()
	r.wants(3, 1, "applied")
}

// A ConfigMap is a directory of links through ..data, which is swapped.
func TestConfigMapIsFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(version, text string) {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, version, "pools.json"), text)
		if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Skip(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	put("..1", `{"pools": {"reporting": {"max_open_conns": 2}}}`)
	path := filepath.Join(dir, "pools.json")
	if err := os.Symlink(filepath.Join("..data", "pools.json"), path); err != nil {
		t.Skip(err)
	}
	r := setup(t, path)
	put("..2", `{"pools": {"reporting": {"max_open_conns": 5}}}`)
	r.look()
	r.wants(5, 1, "applied")
}

func TestFollowLooksUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pools.json")
		write(t, path, `{}`)
		r := setup(t, path)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			r.follow(ctx, time.Second)
			close(done)
		}()
		write(t, path, `{"pools": {"reporting": {"max_open_conns": 7}}}`)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		r.wants(7, 1, "applied")
		cancel()
		<-done
	})
}

func TestTimeBetweenTwoLooksIsPositive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pools.json")
	write(t, path, `{}`)
	for _, every := range []time.Duration{0, -time.Second} {
		err := run(t.Context(), path, every)
		if want := "flag --every must be positive, got " + every.String(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
