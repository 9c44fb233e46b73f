package containers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

const (
	apiTimeout  = 30 * time.Second // of one call to the daemon
	pullTimeout = 10 * time.Minute
)

// configure comes before the first use of testcontainers, which reads its
// environment then.
var configure = sync.OnceValue(func() error {
	log.SetDefault(log.NewNoopLogger())
	return errors.Join(
		os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"),
		// A machine that looks like a container itself is otherwise dialled
		// at its gateway.
		os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1"),
	)
})

// prepare comes before the first container. That it remembers its results keeps
// the watchdog's standard input open.
var prepare = sync.OnceValues(func() (lifeline *os.File, err error) {
	if err := docker(sweep); err != nil {
		return nil, err
	}
	return startWatchdog()
})

// docker calls f with a client, whose connections do not outlive the call.
func docker(f func(context.Context, *client.Client) error) error {
	return dockerWithin(apiTimeout, f)
}

func dockerWithin(timeout time.Duration, f func(context.Context, *client.Client) error) error {
	if err := configure(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return fmt.Errorf("no Docker daemon answers: %w", err)
	}
	defer c.Close()
	return f(ctx, c.Client)
}

// Available returns nil if [Start] can start a server of this kind: a daemon
// answers, and the image is there. An image that is not is pulled, which is
// tried once per process and can take minutes. The error is the reason for a
// person to read.
func Available(name string) error {
	k, err := kindOf(name)
	if err != nil {
		return err
	}
	available.Lock()
	defer available.Unlock()
	if _, known := available.results[k]; !known {
		available.results[k] = k.available()
	}
	return available.results[k]
}

// Preferred returns nil where a server of this kind that could be had otherwise
// should come from [Start]: the environment names an image, which then has to
// work, or the default image is here. Nothing is pulled. The error is the reason
// why not.
func Preferred(name string) error {
	k, err := kindOf(name)
	if err != nil {
		return err
	}
	image, asked := k.image()
	if asked {
		return nil
	}
	return docker(func(ctx context.Context, c *client.Client) error {
		if _, err := c.ImageInspect(ctx, image); err != nil {
			return fmt.Errorf("%s names no image, and the default is not here: %w", k.variable, err)
		}
		return nil
	})
}

// available remembers what Available said. Its lock is held while an image is
// pulled: others that need it wait.
var available = struct {
	sync.Mutex
	results map[*kind]error
}{results: map[*kind]error{}}

func kindOf(name string) (*kind, error) {
	if k := kinds[name]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("no kind of server is named %q", name)
}

func (k *kind) available() error {
	if _, err := prepare(); err != nil {
		return err
	}
	image, _ := k.image()
	return dockerWithin(pullTimeout, func(ctx context.Context, c *client.Client) error {
		if _, err := c.ImageInspect(ctx, image); err == nil {
			return nil
		}
		pull, err := c.ImagePull(ctx, image, client.ImagePullOptions{})
		if err == nil {
			err = pull.Wait(ctx)
		}
		if err != nil {
			return fmt.Errorf("image %s is not here and cannot be pulled (make images builds local ones; %s names one): %w",
				image, k.variable, err)
		}
		return nil
	})
}
