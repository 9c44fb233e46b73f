package containers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

func TestOnlyAProcessKnownToHaveEndedIsGone(t *testing.T) {
	t.Parallel()
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	me, dead := self(), child.Process.Pid
	for _, c := range []struct {
		owner owner
		gone  bool
	}{
		{me, false},
		{owner{me.place, me.pid, ""}, false},
		{owner{me.place, me.pid, "1"}, true}, // its id is another's by now
		{owner{me.place, dead, "1"}, true},
		{owner{me.place, dead, ""}, true},
		{owner{"elsewhere", dead, "1"}, false},
	} {
		if parsed, ok := parseOwner(c.owner.String()); !ok || parsed != c.owner {
			t.Errorf("%q is read as %q", c.owner, parsed)
		}
		if c.owner.gone() != c.gone {
			t.Errorf("gone(%q) = %v", c.owner, !c.gone)
		}
	}
}

// created makes a container that is not started.
func created(t *testing.T, label string) (id string) {
	t.Helper()
	image, _ := kinds[Postgres].image()
	if err := Available(Postgres); err != nil {
		skip(t, Postgres, err)
	}
	err := docker(func(ctx context.Context, c *client.Client) error {
		answer, err := c.ContainerCreate(ctx, client.ContainerCreateOptions{
			Config: &container.Config{Image: image, Labels: map[string]string{ownerLabel: label}},
		})
		id = answer.ID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = docker(func(ctx context.Context, c *client.Client) error { return remove(ctx, c, id) })
	})
	return id
}

func exists(t *testing.T, id string) bool {
	t.Helper()
	err := docker(func(ctx context.Context, c *client.Client) error {
		_, err := c.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		return err
	})
	if err != nil && !errdefs.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestSweepRemovesContainersOfEndedProcessesAlone(t *testing.T) {
	t.Parallel()
	ended := created(t, owner{self().place, os.Getpid(), "1"}.String())
	others := []string{
		created(t, self().String()),
		created(t, owner{"elsewhere", 1, "1"}.String()),
		created(t, "unreadable"),
	}
	if err := docker(sweep); err != nil {
		t.Fatal(err)
	}
	if exists(t, ended) {
		t.Error("the container of an ended process is still there")
	}
	for _, id := range others {
		if !exists(t, id) {
			t.Error("a container of somebody else is gone")
		}
	}
}

// childVariable makes a process of this test start a container and wait to be
// killed.
const childVariable = "SQLBULKHEAD_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := child(); err != nil {
			fmt.Println(err)
		}
		return
	}
	os.Exit(m.Run())
}

func child() error {
	if err := Available(Postgres); err != nil {
		return err
	}
	s := &Server{name: Postgres, kind: kinds[Postgres]}
	err := s.create()
	fmt.Println(s.id)
	if err == nil {
		select {}
	}
	return err
}

func TestContainerGoesWithItsKilledProcess(t *testing.T) {
	t.Parallel()
	if err := Available(Postgres); err != nil {
		skip(t, Postgres, err)
	}
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("without the docker command there is no watchdog: the next sweep clears away")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	id := strings.TrimSpace(line)
	if err != nil || !exists(t, id) {
		t.Errorf("no container %q: %v", id, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for deadline := time.Now().Add(patience); exists(t, id); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the container outlived its process by %v", patience)
		}
	}
}
