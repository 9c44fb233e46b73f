package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// newcomer follows docs/adopt.md from its top, in a directory that is a module of their own. Each command of the page is
// taken in its turn, so that none is left out.
type newcomer struct {
	client
	dir      string
	env      []string
	commands []string          // not yet taken
	places   *strings.Replacer // puts addresses of this test where the page has its own
	binary   string            // what go run ./examples/adopt runs
	stop     func()            // ends the service
}

func begin(t *testing.T) *newcomer {
	t.Helper()
	testserver.Program(t, "curl", "curl")
	testserver.Program(t, "prometheus", "prometheus")
	testserver.Program(t, "promtool", "prometheus")
	dir := t.TempDir()
	n := &newcomer{client: client{T: t}, dir: dir, env: append(os.Environ(), published(t)...), stop: func() {}}
	for _, block := range blocks(t, "sh") {
		for line := range strings.Lines(block) {
			command, _, _ := strings.Cut(line, " #")
			n.commands = append(n.commands, strings.TrimSpace(command))
		}
	}
	n.binary = filepath.Join(dir, "adopt.exe")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", n.binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n.write("go.mod", "module example.org/shop\n\ngo 1.26.0\n")
	return n
}

func (n *newcomer) write(name, text string) {
	n.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600); err != nil {
		n.Fatal(err)
	}
}

func (n *newcomer) take(command string) {
	n.Helper()
	if len(n.commands) == 0 || n.commands[0] != command {
		n.Fatalf("the next command is %q, of the page's %q", command, n.commands)
	}
	n.commands = n.commands[1:]
}

// done fails the test if the page has a command that was not taken.
func (n *newcomer) done() {
	n.Helper()
	if len(n.commands) > 0 {
		n.Errorf("nobody ran %q", n.commands)
	}
}

// does runs the next command to its end and returns its output.
func (n *newcomer) does(command string) string {
	n.Helper()
	n.take(command)
	var out, problems bytes.Buffer
	c := exec.Command("sh", "-c", n.places.Replace(command))
	c.Dir, c.Env, c.Stdout, c.Stderr = n.dir, n.env, &out, &problems
	if err := c.Run(); err != nil {
		n.Fatalf("%s: %v\n%s%s", command, err, &out, &problems)
	}
	n.Logf("%s\n%s", command, &out)
	return out.String()
}

// serves runs the next command, which starts the service, in the place of the one that runs.
func (n *newcomer) serves(command string) {
	n.Helper()
	n.take(command)
	n.stop()
	setting, args, found := strings.Cut(command, "go run ./examples/adopt")
	if !found {
		n.Fatalf("%q starts no service", command)
	}
	c := exec.Command(n.binary, append(strings.Fields(args), "--addr", "127.0.0.1:0")...)
	c.Env = append(n.env, strings.Fields(setting)...)
	n.address, n.stop = n.start(c, `listening on http://([^,]+)`)
	n.places = strings.NewReplacer("localhost:8080", n.address)
}

// start runs a program until it is stopped or the test ends. It returns what matches in that which the program says.
func (n *newcomer) start(c *exec.Cmd, says string) (said string, stop func()) {
	n.Helper()
	r, w := io.Pipe()
	c.Dir, c.Stdout, c.Stderr = n.dir, w, w
	if err := c.Start(); err != nil {
		n.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		err := c.Wait()
		w.Close()
		ended <- err
	}()
	kill := func() { c.Process.Kill() }
	stop = sync.OnceFunc(func() {
		c.Process.Signal(os.Interrupt)
		defer time.AfterFunc(30*time.Second, kill).Stop()
		if err := <-ended; err != nil {
			n.Errorf("%s: %v", c, err)
		}
	})
	n.Cleanup(stop)
	defer time.AfterFunc(time.Minute, kill).Stop()
	var lines strings.Builder
	for s := bufio.NewScanner(r); s.Scan(); {
		if m := regexp.MustCompile(says).FindStringSubmatch(s.Text()); m != nil {
			go io.Copy(io.Discard, r)
			return m[1], stop
		}
		lines.WriteString(s.Text() + "\n")
	}
	n.Fatalf("%s: said nothing like %q, but\n%s", c, says, &lines)
	return "", stop
}
