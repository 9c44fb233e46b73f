// Testsum runs go test with the given arguments and prints what a person wants
// of it: one line per package, everything that failed tests printed, why tests
// were skipped, and at the end how many ran and on which servers.
//
//	testsum -race ./...
//
// Its exit status is that of go test.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
)

func main() {
	code, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
	}
	os.Exit(code)
}

func run(args []string, out io.Writer) (int, error) {
	// An interrupt reaches go test as well. It ends the tests, and the
	// summary of what ran is worth having.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)

	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	s := newSummary(out)
	readErr := s.read(events)
	waitErr := cmd.Wait()
	s.close()
	return exitCode(cmd, waitErr), readErr
}

func exitCode(cmd *exec.Cmd, err error) int {
	code := cmd.ProcessState.ExitCode()
	if err != nil && code <= 0 { // ended by a signal
		return 1
	}
	return code
}

// read feeds the output of go test -json, line by line, to s.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			s.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
