package testserver

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// postgres is a PostgreSQL installation.
type postgres struct {
	bin string // the directory of its binaries
}

var _ engine = postgres{}

// binVariable names the directory with the binaries of the PostgreSQL to use.
const binVariable = "SQLBULKHEAD_POSTGRES_BIN"

// findPostgres finds the PostgreSQL that the environment names, and no other
// then; else the newest where Debian puts them, which is outside PATH, or the
// one in PATH.
func findPostgres() (engine, bool) {
	if !supported {
		return nil, false
	}
	if dir := os.Getenv(binVariable); dir != "" {
		return postgres{dir}, executable(dir+"/postgres") && executable(dir+"/initdb")
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // fails on a bad pattern alone
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(majorOf(b), majorOf(a)) })
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range dirs {
		if executable(dir+"/postgres") && executable(dir+"/initdb") {
			return postgres{dir}, true
		}
	}
	return nil, false
}

// majorOf reads 15 out of /usr/lib/postgresql/15/bin. Anything else is old.
func majorOf(bin string) float64 {
	major, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(bin)), 64)
	return major
}

func executable(path string) bool {
	_, err := exec.LookPath(path)
	return err == nil
}

func (postgres) name() string       { return "postgres" }
func (postgres) accounts() []string { return []string{"postgres"} }
func (e postgres) version() string  { return versionOf(e.bin + "/postgres") }

func (e postgres) initialise(dir string) []string {
	return []string{
		e.bin + "/initdb", "--pgdata=" + dir + "/data", "--username=sqlbulkhead", "--pwfile=" + dir + "/secret",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync",
	}
}

func (postgres) secret(password string) string { return password + "\n" }

// command keeps synchronous_commit on: with fsync off it costs nothing, and
// what was committed survives Kill.
func (e postgres) command(dir string, port int) []string {
	argv := []string{e.bin + "/postgres", "-D", dir + "/data"}
	for _, setting := range []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=" + dir,
		"max_connections=200",
		"shared_buffers=16MB",
		"dynamic_shared_memory_type=mmap", // files in dir, not in /dev/shm
		"fsync=off",
		"full_page_writes=off",
		"wal_level=minimal",
		"max_wal_senders=0",
	} {
		argv = append(argv, "-c", setting)
	}
	return argv
}

// ready reads the file in which the server says so itself. A connection would
// not prove whose server answers.
func (postgres) ready(dir string, pid int) bool {
	file, err := os.ReadFile(dir + "/data/postmaster.pid")
	if err != nil {
		return false
	}
	lines := strings.Split(string(file), "\n")
	return len(lines) >= 8 && lines[0] == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == "ready"
}

func (postgres) dsn(port int, password string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("sqlbulkhead", password),
		Host:     localAddr(port),
		Path:     "postgres",
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

func (postgres) stopSignal() syscall.Signal { return syscall.SIGINT } // "fast": clients are disconnected

// quitSignal is "immediate" and not SIGKILL, which would leave a segment of
// shared memory behind.
func (postgres) quitSignal() syscall.Signal { return syscall.SIGQUIT }

// versionOf reads 15.18 out of what binary --version says.
func versionOf(binary string) string {
	out, err := exec.Command(binary, "--version").Output()
	if err != nil {
		return fmt.Sprintf("of unknown version (%v)", err)
	}
	return regexp.MustCompile(`\d+(\.\w+)*`).FindString(string(out))
}
