package containers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// startTimeout is for a server on a busy machine.
const startTimeout = 3 * time.Minute

// Server is a server in a container. Its methods that take a testing.TB end the
// test when they fail, so call them on the test's goroutine. They return when
// what they say is so, and for Start, Resume and Reconnect that is when the
// server serves.
type Server struct {
	name string
	kind *kind
	dsn  string
	id   string // of the container

	version string
}

// Start starts a server of a kind for one test, which removes it when it ends.
// Where there can be none the test is skipped, or fails if the environment
// names an image for it.
func Start(tb testing.TB, kind string) *Server {
	tb.Helper()
	if err := Available(kind); err != nil {
		skip(tb, kind, err)
	}
	s := &Server{name: kind, kind: kinds[kind]}
	tb.Cleanup(func() { s.remove(tb) })
	if err := s.launch(); err != nil {
		tb.Fatalf("containers: %s: %v", s.kind.product, err)
	}
	return s
}

func skip(tb testing.TB, kind string, err error) {
	tb.Helper()
	if k := kinds[kind]; k != nil {
		if _, asked := k.image(); !asked {
			tb.Skipf("containers: no %s: %v", k.product, err)
		}
	}
	tb.Fatalf("containers: %v", err)
}

// Kind returns "postgres", "mysql" or "mariadb".
func (s *Server) Kind() string { return s.name }

// Name returns what the server is, such as "PostgreSQL 17.6 in a container".
func (s *Server) Name() string { return s.kind.product + " " + s.version + " in a container" }

// Driver returns "pgx" or "mysql".
func (s *Server) Driver() string { return s.kind.driver }

// DSN returns the DSN of an account with every privilege. It stays the same
// through every fault.
func (s *Server) DSN() string { return s.dsn }

// launch starts the container and waits until the server serves.
func (s *Server) launch() error {
	var err error
	for range 3 { // somebody else may take the port before the daemon does
		if err = s.create(); err == nil {
			return s.awaitServing()
		}
		err = errors.Join(err, docker(s.discard))
	}
	return err
}

func (s *Server) create() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	password := rand.Text()
	s.dsn = s.kind.dsn(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), password)

	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	image, _ := s.kind.image()
	c, err := s.kind.run(ctx, image, password, options{
		testcontainers.WithLabels(map[string]string{ownerLabel: self().String()}),
		s.settings(port),
	})
	if c != nil {
		s.id = c.GetContainerID()
	}
	return err
}

// settings publish the server's port and no other, on the host's loopback
// interface, and have TCP find dead clients within three seconds. Waiting is
// left to awaitServing: that of the modules gives up after a minute.
func (s *Server) settings(port int) testcontainers.CustomizeRequestOption {
	return func(req *testcontainers.GenericContainerRequest) error {
		inside, err := network.ParsePort(s.kind.port)
		if err != nil {
			return err
		}
		req.ExposedPorts, req.WaitingFor = []string{s.kind.port}, nil
		req.HostConfigModifier = func(host *container.HostConfig) {
			host.PortBindings = network.PortMap{inside: {{
				HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), HostPort: strconv.Itoa(port),
			}}}
			host.Sysctls = map[string]string{
				"net.ipv4.tcp_keepalive_time":   "1",
				"net.ipv4.tcp_keepalive_intvl":  "1",
				"net.ipv4.tcp_keepalive_probes": "2",
			}
		}
		return nil
	}
}

// freePort finds a port that is free again after a restart: it lies below those
// that systems hand out to outgoing connections.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := 20000 + mathrand.IntN(12000)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

// awaitServing returns once the server answers a query. Before that the port
// may be open: the daemon's proxy holds it, and at its first start the server
// still makes its data.
func (s *Server) awaitServing() error {
	db, err := s.kind.open(s.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxIdleConns(0)
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		if err = s.ask(db); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it does not serve: %w", err)
		}
	}
}

func (s *Server) ask(db *sql.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var version string
	if err := db.QueryRowContext(ctx, s.kind.version).Scan(&version); err != nil {
		return err
	}
	s.version, _, _ = strings.Cut(version, " ")
	s.version, _, _ = strings.Cut(s.version, "-")
	return nil
}

func (s *Server) remove(tb testing.TB) {
	tb.Helper()
	if err := docker(s.discard); err != nil {
		tb.Errorf("containers: remove %s: %v", s.kind.product, err)
	}
}

func (s *Server) discard(ctx context.Context, c *client.Client) error {
	if s.id == "" {
		return nil
	}
	err := remove(ctx, c, s.id)
	if err == nil {
		s.id = ""
	}
	return err
}
