// Benchdiff runs the benchmarks of packages several times and prints each
// beside its twin on plain database/sql: the fastest of the runs, since
// whatever else a machine does only ever slows a benchmark down, and the
// difference, with the bound that it has to hold.
//
//	benchdiff -count 5 -bench . ./partition
//
// Its exit status is 1 if a bound does not hold.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	ok, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchdiff:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) (ok bool, err error) {
	flags := flag.NewFlagSet("benchdiff", flag.ExitOnError)
	bench := flags.String("bench", ".", "run benchmarks that match this `regexp`")
	benchtime := flags.String("benchtime", "200ms", "run each for this `time`")
	count := flags.Int("count", 7, "how `often`")
	flags.Parse(args)

	best := results{}
	for i := range *count {
		fmt.Fprintf(os.Stderr, "\rrun %d of %d", i+1, *count)
		cmd := exec.Command("go", append([]string{"test", "-run", "^$", "-benchmem",
			"-bench", *bench, "-benchtime", *benchtime}, flags.Args()...)...)
		cmd.Stderr = os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return false, fmt.Errorf("%w\n%s", err, text)
		}
		if err := best.add(bytes.NewReader(text)); err != nil {
			return false, err
		}
	}
	fmt.Fprint(os.Stderr, "\r                \r")
	return best.print(out)
}
