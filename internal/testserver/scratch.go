package testserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// scratch is everything that this process has outside itself: one directory
// with a subdirectory per server, and a watchdog that clears both away.
var scratch struct {
	// mu guards the fields. It is held for moments, never while a server
	// starts or stops.
	mu        sync.Mutex
	dir       string              // empty: nothing is there
	lifeline  *os.File            // the watchdog acts when this is closed
	watchdog  *process            //
	password  string              // of every private server
	servers   map[*Server]bool    // that run or may run again
	templates map[string]*created // by engine name
	count     int                 // servers made, for the names of directories
}

// created is a data directory that is made once and then copied: initdb takes
// a second, a copy a tenth of one.
type created struct {
	once sync.Once
	dir  string
	err  error
}

// watchdogScript clears the directory $0 away once its standard input ends,
// which is when the test process closes it or is gone: after a panic, an
// interrupt and a kill -9 too, where no code of ours runs any more. Every
// process that we start leads its own group and leaves its id in a file. What
// is paused wakes up first, or it would not see that it is to end.
const watchdogScript = `
read -r _
pids=$(cat "$0"/*/pid 2>/dev/null)
for p in $pids; do kill -s CONT "$p" $(cat /proc/$p/task/$p/children); kill -s QUIT -- "-$p"; done
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	alive=
	for p in $pids; do kill -s 0 -- "-$p" && alive=yes; done
	[ -z "$alive" ] && rm -rf "$0" && exit
	sleep 0.2
done
for p in $pids; do kill -s KILL -- "-$p"; done
sleep 0.2
rm -rf "$0"
`

// openScratchLocked makes the directory and starts its watchdog, unless they
// are there.
func openScratchLocked() error {
	if scratch.dir != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "sqlbulkhead-")
	if err != nil {
		return err
	}
	lifeline, watchdog, err := startWatchdog(dir)
	// Servers run as other users and must pass through to their own
	// directories, which stay closed.
	if err := errors.Join(err, os.Chmod(dir, 0o711)); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	scratch.dir, scratch.lifeline, scratch.watchdog = dir, lifeline, watchdog
	scratch.password = rand.Text()
	scratch.servers = map[*Server]bool{}
	scratch.templates = map[string]*created{}
	return nil
}

// discardScratch ends every server and removes the directory.
func discardScratch() {
	scratch.mu.Lock()
	dir, lifeline, watchdog, servers := scratch.dir, scratch.lifeline, scratch.watchdog, scratch.servers
	scratch.dir, scratch.servers, scratch.templates = "", nil, nil
	scratch.mu.Unlock()
	if dir == "" {
		return
	}
	for s := range servers {
		s.quit()
	}
	lifeline.Close()
	watchdog.wait(10 * time.Second)
}

// serverDir makes the directory of one more server of e, with its data copied
// from the template, and says what the password is.
func serverDir(e engine) (dir, password string, err error) {
	scratch.mu.Lock()
	if err := openScratchLocked(); err != nil {
		scratch.mu.Unlock()
		return "", "", err
	}
	t := scratch.templates[e.name()]
	if t == nil {
		t = &created{dir: filepath.Join(scratch.dir, e.name()+"-template")}
		scratch.templates[e.name()] = t
	}
	scratch.count++
	dir = filepath.Join(scratch.dir, fmt.Sprint(e.name(), "-", scratch.count))
	password = scratch.password
	scratch.mu.Unlock()

	t.once.Do(func() { t.err = initialise(e, t.dir, password) })
	if t.err != nil {
		return "", "", t.err
	}
	if err := makeDir(e, dir, password); err != nil {
		return "", "", err
	}
	return dir, password, run(e, dir, "cp", "-a", t.dir+"/data", dir+"/data")
}

func initialise(e engine, dir, password string) error {
	if err := makeDir(e, dir, password); err != nil {
		return err
	}
	return run(e, dir, e.initialise(dir)...)
}

// makeDir makes a directory that belongs to the account which e runs as, with
// the file secret in it.
func makeDir(e engine, dir, password string) error {
	secret := filepath.Join(dir, "secret")
	return errors.Join(
		os.Mkdir(dir, 0o700),
		os.WriteFile(secret, []byte(e.secret(password)), 0o600),
		handOver(e, secret),
		handOver(e, dir),
	)
}

// keep has s ended by Stop. It reports whether there was still time.
func keep(s *Server) bool {
	scratch.mu.Lock()
	defer scratch.mu.Unlock()
	if scratch.servers == nil {
		return false
	}
	scratch.servers[s] = true
	return true
}

func forget(s *Server) {
	scratch.mu.Lock()
	defer scratch.mu.Unlock()
	delete(scratch.servers, s)
}
