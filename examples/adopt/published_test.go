package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// published has this checkout's modules served as a module proxy would, and returns the environment in which a go command
// finds them there. What they require comes from this machine's module cache, if it has that.
func published(t *testing.T) (env []string) {
	t.Helper()
	proxy := t.TempDir()
	const root = "github.com/sqlbulkhead/sqlbulkhead"
	publish(t, proxy, root, "../..")
	publish(t, proxy, root+"/metrics/prometheus", "../../metrics/prometheus")
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, others, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return []string{
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download") + "," + others,
		"GONOSUMDB=" + root, "GOWORK=off", "GOTOOLCHAIN=local",
		// A cache of the test's own: another day's version may have the same number. Builds are found again nevertheless.
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw -trimpath",
	}
}

func publish(t *testing.T, proxy, path, dir string) {
	t.Helper()
	version := module.Version{Path: path, Version: "v0.0.0"} // as the modules require each other
	to := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"list":                    version.Version + "\n",
		version.Version + ".info": `{"Version":"` + version.Version + `"}`,
		version.Version + ".mod":  string(gomod),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(to, version.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := zip.CreateFromDir(f, version, dir); err != nil {
		t.Fatal(err)
	}
}
