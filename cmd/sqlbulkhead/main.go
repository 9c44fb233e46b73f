// Sqlbulkhead is the command that comes with the library of the same name.
//
//	go run ./cmd/sqlbulkhead demo
//
// shows what the library is for: logins beside slow reports, first in one pool
// of connections, then in partitions of the same total size. It needs nothing
// but Go. `size` computes how many connections a pool needs, and `check` asks a
// server whether it can carry a configuration. `sqlbulkhead help` lists the
// commands.
//
// The exit status is 0 if the command did its work; 1 if it could not, as with a
// data source that is wrong, a server that is not reached or a driver that is not
// known, or if it found what would break; 2 if a command, flag or argument is
// wrong or missing; and 130 if it was interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// command is a subcommand. Its error is one line, and is not yet printed.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, stdout io.Writer) error
}

var commands = []command{
	{"demo", "play logins beside slow reports, in one pool and in partitions", demo},
	{"size", "compute how many connections a pool needs", size},
	{"check", "ask the server whether it can carry a configuration", check},
}

// usageError is a mistake of the person at the keyboard.
type usageError struct{ error }

func main() {
	// A terminal that is closed and a reader that goes away (demo | head) are
	// interrupts too: the temporary file and the table must not stay behind.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	name, args := args[0], args[1:]
	if isHelp(name) {
		if len(args) == 0 {
			usage(stdout)
			return exitOK
		}
		name, args = args[0], []string{"--help"}
	}
	for _, c := range commands {
		if c.name == name {
			return conclude(ctx, c, c.run(ctx, args, stdout), stderr)
		}
	}
	fmt.Fprintf(stderr, "sqlbulkhead: unknown command %q (see: sqlbulkhead help)\n", name)
	return exitUsage
}

func isHelp(arg string) bool {
	return arg == "help" || arg == "-h" || arg == "-help" || arg == "--help"
}

func usage(w io.Writer) {
	fmt.Fprint(w, "Usage: sqlbulkhead COMMAND [flags]\n\nCommands:\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-8s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\nsqlbulkhead COMMAND --help explains the flags of a command.\n")
}

// conclude says what a command's error means, in one line, and returns the exit
// status.
func conclude(ctx context.Context, c command, err error, stderr io.Writer) int {
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case err == ctx.Err():
		return exitInterrupted
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "sqlbulkhead %s: %v (see: sqlbulkhead %[1]s --help)\n", c.name, err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "sqlbulkhead %s: %v\n", c.name, err)
	if ctx.Err() != nil {
		return exitInterrupted
	}
	return exitFailure
}
