package testserver

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// pgbouncer is a PgBouncer in front of one PostgreSQL server.
type pgbouncer struct {
	binary   string
	target   *url.URL
	settings []string
}

var _ engine = pgbouncer{}

// findPgBouncer looks in PATH, and in /usr/sbin, which is in root's PATH alone.
func findPgBouncer() (engine, bool) {
	if !supported {
		return nil, false
	}
	binary, err := exec.LookPath("pgbouncer")
	if err != nil {
		binary, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	return pgbouncer{binary: binary}, err == nil
}

// StartPgBouncer starts a PgBouncer for this test alone in front of the server
// with this DSN, as [Postgres] returned it, and removes it when the test is
// over. Its DSN is the server's with another address: every role logs in with
// the password that it has on the server. It pools by transaction unless the
// settings, lines as in pgbouncer.ini, say otherwise.
func StartPgBouncer(tb testing.TB, dsn string, settings ...string) *Server {
	tb.Helper()
	b := pgbouncerFamily.installed(tb).(pgbouncer)
	target, ok := parseURL(dsn)
	if !ok {
		tb.Fatal("testserver: the server behind PgBouncer must be given by URL")
	}
	b.target, b.settings = target, settings
	return pgbouncerFamily.startEngine(tb, b)
}

func (pgbouncer) name() string       { return "pgbouncer" }
func (pgbouncer) accounts() []string { return []string{"postgres"} }
func (e pgbouncer) version() string  { return versionOf(e.binary) }

// initialise makes an empty directory: PgBouncer keeps nothing.
func (pgbouncer) initialise(dir string) []string { return []string{"mkdir", dir + "/data"} }

// secret is the one login that PgBouncer needs to look the others up.
func (e pgbouncer) secret(string) string {
	password, _ := e.target.User.Password()
	return quoted(e.target.User.Username()) + " " + quoted(password) + "\n"
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }

// command has a shell write the configuration, which knows no other form than a
// file, and become the server.
func (e pgbouncer) command(dir string, port int) []string {
	config := []string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%s", e.target.Hostname(), e.target.Port()),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		"listen_port = " + strconv.Itoa(port),
		"unix_socket_dir =",
		"auth_type = md5", // SCRAM where that is what the server keeps
		"auth_file = " + dir + "/secret",
		"auth_user = " + e.target.User.Username(),
		"pool_mode = transaction",
	}
	text := strings.Join(append(config, e.settings...), "\n")
	return []string{"/bin/sh", "-c", `printf '%s\n' "$1" >pgbouncer.ini; exec "$0" pgbouncer.ini`, e.binary, text}
}

// ready looks for what the server itself logs once it listens, with its
// process id before it.
func (pgbouncer) ready(dir string, pid int) bool {
	log, err := os.ReadFile(dir + "/log")
	return err == nil && bytes.Contains(log, fmt.Appendf(nil, " [%d] LOG process up", pid))
}

func (e pgbouncer) dsn(port int, _ string) string {
	return WithAddr(e.target.String(), localAddr(port))
}

func (pgbouncer) stopSignal() syscall.Signal { return syscall.SIGTERM }
func (pgbouncer) quitSignal() syscall.Signal { return syscall.SIGKILL }
