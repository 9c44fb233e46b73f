package containers

import (
	"context"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// bridge is the network of every container that names none.
const bridge = "bridge"

// Pause stops every process of the server where it is: it hangs.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	s.do(tb, "pause", func(ctx context.Context, c *client.Client) error {
		_, err := c.ContainerPause(ctx, s.id, client.ContainerPauseOptions{})
		return err
	})
}

// Resume has a paused server go on.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	s.do(tb, "resume", func(ctx context.Context, c *client.Client) error {
		_, err := c.ContainerUnpause(ctx, s.id, client.ContainerUnpauseOptions{})
		return err
	})
	s.serve(tb)
}

// Stop shuts the server down as an administrator does, for at most 20 s; then
// it is killed.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.do(tb, "stop", func(ctx context.Context, c *client.Client) error {
		seconds := 20
		_, err := c.ContainerStop(ctx, s.id, client.ContainerStopOptions{Timeout: &seconds})
		return err
	})
}

// Start starts a server that was stopped or killed, on the same port and data.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	s.do(tb, "start", func(ctx context.Context, c *client.Client) error {
		_, err := c.ContainerStart(ctx, s.id, client.ContainerStartOptions{})
		return err
	})
	s.serve(tb)
}

// Kill ends the server as a crash does, by SIGKILL.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.do(tb, "kill", func(ctx context.Context, c *client.Client) error {
		if _, err := c.ContainerKill(ctx, s.id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
			return err
		}
		ended := c.ContainerWait(ctx, s.id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case err := <-ended.Error:
			return err
		case <-ended.Result:
			return nil
		}
	})
}

// Disconnect takes the server off its network. See the package on what clients
// see of it, and what the server does not.
func (s *Server) Disconnect(tb testing.TB) {
	tb.Helper()
	s.do(tb, "disconnect", func(ctx context.Context, c *client.Client) error {
		_, err := c.NetworkDisconnect(ctx, bridge, client.NetworkDisconnectOptions{Container: s.id})
		return err
	})
}

// Reconnect puts the server back on its network, on the same port.
func (s *Server) Reconnect(tb testing.TB) {
	tb.Helper()
	s.do(tb, "reconnect", func(ctx context.Context, c *client.Client) error {
		_, err := c.NetworkConnect(ctx, bridge, client.NetworkConnectOptions{Container: s.id})
		return err
	})
	s.serve(tb)
}

func (s *Server) do(tb testing.TB, what string, f func(context.Context, *client.Client) error) {
	tb.Helper()
	if err := dockerWithin(time.Minute, f); err != nil {
		tb.Fatalf("containers: %s %s: %v", what, s.kind.product, err)
	}
}

func (s *Server) serve(tb testing.TB) {
	tb.Helper()
	if err := s.awaitServing(); err != nil {
		tb.Fatalf("containers: %s: %v", s.kind.product, err)
	}
}
