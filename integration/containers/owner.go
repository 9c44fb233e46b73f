package containers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// ownerLabel is on every container of ours and names the process that has to
// remove it.
const ownerLabel = "sqlbulkhead.owner"

// owner is a process. A process id alone would soon be another's.
type owner struct {
	place string // the machine and, on Linux, its namespace of process ids
	pid   int
	start string // when the process started, in the kernel's ticks; empty where it does not say
}

var self = sync.OnceValue(func() owner {
	host, _ := os.Hostname() // one name is as good as another if there is none
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	pid := os.Getpid()
	return owner{host + "," + namespace, pid, startOf(pid)}
})

func (o owner) String() string { return fmt.Sprintf("%s %d %s", o.place, o.pid, o.start) }

func parseOwner(label string) (o owner, ok bool) {
	fields := strings.Split(label, " ")
	if len(fields) != 3 {
		return o, false
	}
	pid, err := strconv.Atoi(fields[1])
	return owner{fields[0], pid, fields[2]}, err == nil
}

// gone reports whether the process is known to have ended. Of other machines
// nothing is known.
func (o owner) gone() bool {
	if o.place != self().place {
		return false
	}
	if o.start != "" {
		return startOf(o.pid) != o.start
	}
	p, err := os.FindProcess(o.pid)
	if err != nil {
		return true
	}
	err = p.Signal(syscall.Signal(0))
	return errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH)
}

// startOf reads field 22 of /proc/PID/stat. The second, in parentheses, may
// hold anything.
func startOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" { // a zombie has ended
		return ""
	}
	return fields[19]
}

// sweep removes the containers of processes that are gone.
func sweep(ctx context.Context, c *client.Client) error {
	list, err := c.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: client.Filters{}.Add("label", ownerLabel),
	})
	if err != nil {
		return err
	}
	for _, found := range list.Items {
		if o, ok := parseOwner(found.Labels[ownerLabel]); ok && o.gone() {
			if err := remove(ctx, c, found.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove ends a container, whatever its state. Somebody else may be at it.
func remove(ctx context.Context, c *client.Client, id string) error {
	_, err := c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
		return nil
	}
	return err
}

// watchdogScript removes the containers with the label $0 once its standard
// input ends, which is when this process does. It looks more than once: a
// container may be on its way while the process dies. Signals from the terminal
// are for the process.
const watchdogScript = `
trap '' INT HUP TERM
read -r _
for i in 1 2 3; do
	ids=$(docker ps --all --quiet --filter "label=$0")
	[ -z "$ids" ] || docker rm --force --volumes $ids
	sleep 1
done
`

// startWatchdog returns the watchdog's standard input, to be kept for as long as
// this process lives. Where there is no docker command there is no watchdog: the
// next sweep clears away.
func startWatchdog() (lifeline *os.File, err error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return nil, nil
	}
	stdin, lifeline, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	cmd := exec.Command("sh", "-c", watchdogScript, ownerLabel+"="+self().String())
	cmd.Stdin = stdin
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, lifeline.Close())
	}
	return lifeline, cmd.Process.Release()
}
