package testserver

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// mariadb is a MariaDB installation.
type mariadb struct {
	server, install string // its binaries
}

var _ engine = mariadb{}

// findMariaDB looks in PATH, and in /usr/sbin, which is in root's PATH alone.
func findMariaDB() (engine, bool) {
	if !supported {
		return nil, false
	}
	server, err := exec.LookPath("mariadbd")
	if err != nil {
		if server, err = exec.LookPath("/usr/sbin/mariadbd"); err != nil {
			return nil, false
		}
	}
	install, err := exec.LookPath("mariadb-install-db")
	return mariadb{server, install}, err == nil
}

func (mariadb) name() string       { return "mariadb" }
func (mariadb) accounts() []string { return []string{"mysql"} }
func (e mariadb) version() string  { return versionOf(e.server) }

func (e mariadb) initialise(dir string) []string {
	return []string{
		e.install, "--no-defaults", "--datadir=" + dir + "/data",
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
		"--innodb-log-file-size=8M", // half the size of what is then copied
	}
}

// secret is run at every start, before the first client is let in. It leaves
// root to the socket, which no other user of the machine can reach.
func (mariadb) secret(password string) string {
	return "DROP USER IF EXISTS root@'127.0.0.1', root@'::1';\n" +
		"CREATE USER IF NOT EXISTS sqlbulkhead@'127.0.0.1' IDENTIFIED BY '" + password + "';\n" +
		"GRANT ALL ON *.* TO sqlbulkhead@'127.0.0.1' WITH GRANT OPTION;\n" +
		"CREATE DATABASE IF NOT EXISTS sqlbulkhead;\n"
}

// command has InnoDB write at each commit, but not to disk: what was committed
// survives Kill.
func (e mariadb) command(dir string, port int) []string {
	return []string{
		e.server, "--no-defaults", "--datadir=" + dir + "/data", "--init-file=" + dir + "/secret",
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(port),
		"--socket=" + dir + "/socket",
		"--pid-file=" + dir + "/server-pid",
		"--skip-name-resolve",
		"--skip-log-bin",
		"--max-connections=300",
		"--innodb-buffer-pool-size=32M",
		"--innodb-log-file-size=8M",
		"--innodb-flush-log-at-trx-commit=2",
		"--aria-pagecache-buffer-size=8M",
		"--key-buffer-size=1M",
		"--performance-schema=OFF",
	}
}

// ready waits for the server's greeting on its socket, which nobody else can
// have taken as they can a port.
func (mariadb) ready(dir string, _ int) bool {
	conn, err := net.DialTimeout("unix", dir+"/socket", time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // or the read fails
	var greeting [5]byte
	_, err = io.ReadFull(conn, greeting[:])
	return err == nil && greeting[4] == 10 // the protocol's version; an error packet has 255
}

func (mariadb) dsn(port int, password string) string {
	return fmt.Sprintf("sqlbulkhead:%s@tcp(%s)/sqlbulkhead", password, localAddr(port))
}

func (mariadb) stopSignal() syscall.Signal { return syscall.SIGTERM }
func (mariadb) quitSignal() syscall.Signal { return syscall.SIGKILL }
