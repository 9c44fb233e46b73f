//go:build unix

package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const supported = true

// process is a child. It is looked after without a goroutine, which every
// leak check of the tests would find.
type process struct {
	pid int
	kin *os.File // at its end when the process and all that it forked are gone

	mu     sync.Mutex // guards reaped
	reaped bool       // then pid may be anybody's and gets no signal
}

func (p *process) exited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exitedLocked()
}

func (p *process) exitedLocked() bool {
	if !p.reaped {
		pid, err := syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		p.reaped = pid == p.pid || errors.Is(err, syscall.ECHILD)
	}
	return p.reaped
}

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.exitedLocked() {
		_ = syscall.Kill(p.pid, s) // it may be gone already, which is as well
	}
}

// wait reports whether the process ended within d.
func (p *process) wait(d time.Duration) bool {
	for deadline := time.Now().Add(d); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if p.exited() {
			return true
		}
	}
	return p.exited()
}

// end sends the signal, and a SIGKILL if that does not end the process in time.
// It returns when the processes that it forked are gone too: PostgreSQL's
// outlive a SIGKILL for a moment and would answer their clients.
func (p *process) end(s syscall.Signal, patience time.Duration) {
	p.signal(s)
	if !p.wait(patience) {
		p.signal(syscall.SIGKILL)
		p.wait(patience)
	}
	if p.kin.SetReadDeadline(time.Now().Add(patience)) == nil {
		_, _ = p.kin.Read(make([]byte, 1)) // nothing is ever written
	}
	p.kin.Close()
}

// stop freezes the process and its children, or reports that it cannot. The
// parent comes first, so that it forks no more; a child that it forked while
// its own signal was under way is found by the second look.
func (p *process) stop() error {
	p.signal(syscall.SIGSTOP)
	for range 2 {
		time.Sleep(10 * time.Millisecond)
		if err := p.signalChildren(syscall.SIGSTOP); err != nil {
			p.signal(syscall.SIGCONT)
			return err
		}
	}
	return nil
}

// resume ends stop.
func (p *process) resume() {
	p.signal(syscall.SIGCONT)
	_ = p.signalChildren(syscall.SIGCONT) // they were found before
}

// signalChildren is for what a signal to the group does not reach: PostgreSQL
// gives each of its processes a group of its own. It needs Linux.
func (p *process) signalChildren(s syscall.Signal) error {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", p.pid))
	for _, field := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(field); err == nil {
			_ = syscall.Kill(pid, s) // it may be gone already
		}
	}
	return err
}

// start runs a command of e in dir. Its output goes to dir/log, its process id
// to dir/pid.
func start(e engine, dir string, argv ...string) (*process, error) {
	cmd, err := command(e, dir, argv...)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return begin(cmd)
}

// run is start and waiting for success.
func run(e engine, dir string, argv ...string) error {
	cmd, err := command(e, dir, argv...)
	if err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	os.Remove(filepath.Join(dir, "pid"))
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", argv[0], err, out)
	}
	return nil
}

// command prepares a command that leads a group and a session of its own: an
// interrupt from the terminal is for the test process, and the watchdog ends
// the whole group. The shell writes its id down before it becomes the command,
// so that no moment is left in which a kill -9 of the test process would leave
// a server that nobody knows.
func command(e engine, dir string, argv ...string) (*exec.Cmd, error) {
	credential, err := credentialOf(e)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", `echo $$ >pid; exec "$@"`, "sh"}, argv...)...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: credential}
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH") + ":/usr/local/sbin:/usr/sbin:/sbin",
		"HOME=" + dir,
		"TMPDIR=" + dir,
		"LC_ALL=C",
	}
	return cmd, nil
}

// begin starts cmd as a process that we wait for ourselves.
func begin(cmd *exec.Cmd) (*process, error) {
	kin, held, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer held.Close()
	cmd.ExtraFiles = []*os.File{held}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, kin.Close())
	}
	p := &process{pid: cmd.Process.Pid, kin: kin}
	return p, cmd.Process.Release()
}

// credentialOf returns whom a server of e runs as: nil for ourselves, and for
// root one of the engine's accounts, since database servers refuse to be root.
func credentialOf(e engine) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range append(e.accounts(), "nobody") {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
	}
	return nil, fmt.Errorf("no account to run %s as: root may not", e.name())
}

// handOver gives a file to the account that e runs as.
func handOver(e engine, path string) error {
	credential, err := credentialOf(e)
	if err != nil || credential == nil {
		return err
	}
	return os.Chown(path, int(credential.Uid), int(credential.Gid))
}

// startWatchdog starts the script that clears dir away when lifeline is closed.
func startWatchdog(dir string) (lifeline *os.File, watchdog *process, err error) {
	stdin, lifeline, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer stdin.Close()
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, dir)
	cmd.Dir = "/"
	cmd.Stdin = stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if watchdog, err = begin(cmd); err != nil {
		return nil, nil, errors.Join(err, lifeline.Close())
	}
	return lifeline, watchdog, nil
}
