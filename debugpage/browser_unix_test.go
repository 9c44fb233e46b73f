//go:build unix

package debugpage_test

import (
	"os/exec"
	"syscall"
)

// endsWhole has a command ended together with what it started.
func endsWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
