package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// demand is what the flags of size say.
type demand struct {
	rate     float64       // calls per second
	p99      time.Duration // that a call holds its connection
	headroom float64
	attempts float64
}

// maxOpenConns is the most that package partition lets a pool have.
const maxOpenConns = 1_000_000

// size computes how many connections a pool needs, and says why.
func size(_ context.Context, args []string, stdout io.Writer) error {
	d := demand{headroom: 1.5, attempts: 1}
	fs := d.flagSet()
	err := parse(fs, args, sizeHelp, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case d.rate == 0:
		return usageError{errors.New("flag --rate is required, for example --rate 300")}
	case d.p99 == 0:
		return usageError{errors.New("flag --p99 is required, for example --p99 20ms")}
	case d.connections() > maxOpenConns:
		return usageError{fmt.Errorf("--rate, --p99, --headroom and --attempts come to more than %d connections, the most that a pool can have", maxOpenConns)}
	}
	d.explain(stdout)
	return nil
}

func (d *demand) flagSet() *flag.FlagSet {
	fs := newFlagSet("size")
	fs.Var(decimal{&d.rate, 0.0001, 1e6}, "rate", "`number` of calls per second at the peak, of one instance")
	fs.Var(span{&d.p99, time.Microsecond, 24 * time.Hour}, "p99", "`time` that 99 of 100 calls hold their connection at most, from the\n"+
		"acquire to the return")
	fs.Var(decimal{&d.headroom, 1, 100}, "headroom", "`factor` for bursts over the rate: 1.2 for steady work, 2 and more for\n"+
		"spiky work")
	fs.Var(decimal{&d.attempts, 1, 100}, "attempts", "`number` of times that a call is made, retries included, on average or,\n"+
		"to be prepared for the worst, at most")
	return fs
}

var sizeHelp = help{`Usage: sqlbulkhead size --rate NUMBER --p99 TIME [flags]

Computes max_open_conns of a pool by Little's law: connections in use = acquires
per second × how long each holds its connection. The law is about averages; with
the p99 in place of the average the pool carries its slow moments too. A call
holds its connection longer than its query runs: a transaction does between its
statements, and rows until they are closed.

Flags:
`, []string{"size --rate 300 --p99 20ms", "size --rate 0.1 --p99 20s --headroom 2 --attempts 3"}}

// acquires per second: each retry is one more.
func (d demand) acquires() float64 { return d.rate * d.attempts }

func (d demand) connections() int { return partition.Size(d.acquires(), d.p99, d.headroom) }

func (d demand) explain(w io.Writer) {
	n, inUse := d.connections(), d.acquires()*d.p99.Seconds()
	fmt.Fprintf(w, "max_open_conns: %d\n\n", n)
	fmt.Fprintf(w, "  %s calls/s × %s = %s acquires/s: each attempt takes a connection anew\n",
		plain(d.rate), times(d.attempts, "attempt"), digits(d.acquires()))
	fmt.Fprintf(w, "  × %s held = %s in use at a time, were every call as slow as the p99 (Little's law)\n",
		short(d.p99), digits(inUse))
	fmt.Fprintf(w, "  × %s headroom for bursts = %s, in whole connections %d\n\n", plain(d.headroom), digits(inUse*d.headroom), n)
	fmt.Fprintf(w, "With acquire_timeout 100ms, a caller behind more than %d others in the queue waits for nothing\n"+
		"(%d × 100ms ÷ %s): a longer max_waiting only makes it wait.\n", d.inTime(n), n, short(d.p99))
	fmt.Fprint(w, "This is for one instance. The server must have as many for each: sqlbulkhead check --instances.\n")
}

// inTime is how many calls n connections finish within a usual acquire timeout.
func (d demand) inTime(n int) int {
	return int(math.Min(float64(n)*float64(100*time.Millisecond)/float64(d.p99), math.MaxInt32))
}

// times is "1 attempt", "2.5 attempts".
func times(f float64, what string) string {
	if f == 1 {
		return "1 " + what
	}
	return plain(f) + " " + what + "s"
}

// digits is f to three digits behind the point at most. What is smaller than
// that is not shown as nothing.
func digits(f float64) string {
	rounded := math.Round(f*1000) / 1000
	if rounded == 0 {
		return fmt.Sprintf("%.1g", f)
	}
	return plain(rounded)
}
