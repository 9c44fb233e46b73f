//go:build !unix

package testserver

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// supported is false where no private server can be started: there tests use
// the servers of the environment.
const supported = false

type process struct{ pid int }

func (*process) exited() bool                      { return true }
func (*process) end(syscall.Signal, time.Duration) {}
func (*process) wait(time.Duration) bool           { return true }
func (*process) stop() error                       { return errors.ErrUnsupported }
func (*process) resume()                           {}

func start(engine, string, ...string) (*process, error) { return nil, errors.ErrUnsupported }
func run(engine, string, ...string) error               { return errors.ErrUnsupported }
func handOver(engine, string) error                     { return errors.ErrUnsupported }
func startWatchdog(string) (*os.File, *process, error)  { return nil, nil, errors.ErrUnsupported }
