package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// settings is what the flags of the demo say.
type settings struct {
	driver, dsn string
	duration    time.Duration // of an arrangement; the baseline takes half of it
	logins      int           // per second
	analysts    int
	hold        time.Duration // how long a report takes
	connections int           // of all pools of an arrangement together
	reporting   int           // of those, in the partitions
	page        string        // file to write; empty: none
}

var defaults = settings{
	driver:      "sqlite",
	duration:    10 * time.Second,
	logins:      100,
	analysts:    40,
	hold:        2 * time.Second,
	connections: 20,
	reporting:   3,
}

// oltp is how many connections the reports leave to the logins.
func (s settings) oltp() int { return s.connections - s.reporting }

// parseFlags reads and checks the flags of the demo. If help is asked for it
// prints that and returns flag.ErrHelp.
func parseFlags(args []string, stdout io.Writer) (settings, error) {
	s := defaults
	if err := parse(s.flagSet(), args, demoHelp(), stdout); err != nil {
		return s, err
	}
	return s, s.check()
}

// help is what --help says before and after the flags.
type help struct {
	text     string
	examples []string
}

// parse reads the flags of a command, which takes no other arguments. If help is
// asked for it prints that and returns flag.ErrHelp.
func parse(fs *flag.FlagSet, args []string, h help, stdout io.Writer) error {
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		h.print(fs, stdout)
		return err
	case err != nil:
		// Package flag writes one dash, our help two.
		return usageError{errors.New(strings.Replace(err.Error(), " flag -", " flag --", 1))}
	case fs.NArg() > 0:
		return usageError{fmt.Errorf("unexpected argument %q", fs.Arg(0))}
	}
	return nil
}

// newFlagSet leaves it to the caller to print what is wrong.
func newFlagSet(command string) *flag.FlagSet {
	fs := flag.NewFlagSet(command, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}

func (s *settings) flagSet() *flag.FlagSet {
	fs := newFlagSet("demo")
	fs.StringVar(&s.driver, "driver", s.driver, "`name`: "+driverNames())
	fs.StringVar(&s.dsn, "dsn", "", "data source `name` in the syntax of the driver. It is required but for sqlite,\n"+
		"which without one uses a temporary file")
	fs.Var(span{&s.duration, 100 * time.Millisecond, time.Hour}, "duration", "`time` that each of the two arrangements is played")
	fs.Var(whole{&s.logins, 1, 10000}, "logins", "`number` of logins that are started per second")
	fs.Var(whole{&s.analysts, 0, 1000}, "analysts", "`number` of analysts, each running one report after the other")
	fs.Var(span{&s.hold, 10 * time.Millisecond, 30 * time.Second}, "hold", "`time` that a report holds its connection")
	fs.Var(whole{&s.connections, 2, 1000}, "connections", "`number` of connections, in both arrangements")
	fs.Var(whole{&s.reporting, 1, 999}, "reporting", "`number` of those for reports, in the partitions")
	fs.Var(pageName{&s.page}, "report", "`file.html` to write, with a plot of every login's latency")
	return fs
}

// check is for what no flag can say of itself.
func (s settings) check() error {
	family, err := familyOf(s.driver)
	switch {
	case err != nil:
		return err
	case s.dsn == "" && family.example != "":
		return family.wantsDSN(s.driver)
	case s.reporting >= s.connections:
		return usageError{fmt.Errorf("invalid value \"%d\" for flag --reporting: must be from 1 to %d, one less than --connections",
			s.reporting, s.connections-1)}
	}
	return nil
}

const demoText = `Usage: sqlbulkhead demo [flags]

Plays logins, short and many, beside the reports of a crowd of analysts, each of
which holds a connection for seconds: first the logins alone, then both in one
shared pool (sql.Open), then both in partitions (partition.Open) of the same
total size. A report waits and burns no processor, so what you see is the pool
and not the machine. A login is given up after %v, and its latency counts from
the moment at which it was due. On a server of yours the demo works in a table
of its own, which it drops at the end.

Flags:
`

func demoHelp() help {
	h := help{fmt.Sprintf(demoText, loginPatience), []string{"demo"}}
	for _, name := range []string{"pgx", "mysql"} {
		h.examples = append(h.examples, fmt.Sprintf("demo --driver %s --dsn '%s'", name, families[name].example))
	}
	return h
}

func (h help) print(fs *flag.FlagSet, w io.Writer) {
	fmt.Fprint(w, h.text)
	fs.VisitAll(func(f *flag.Flag) {
		kind, text := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  --%s %s\n", f.Name, kind)
		if b, ok := f.Value.(interface{ bounds() string }); ok {
			text += ", " + b.bounds()
		}
		if f.DefValue != "" {
			text += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(w, "        %s\n", strings.ReplaceAll(text, "\n", "\n        "))
	})
	fmt.Fprint(w, "\nExamples:\n")
	for _, example := range h.examples {
		fmt.Fprintf(w, "  sqlbulkhead %s\n", example)
	}
}

// whole is a flag that takes a whole number within bounds.
type whole struct {
	at       *int
	min, max int
}

func (v whole) String() string {
	if v.at == nil { // package flag asks the zero value, too
		return ""
	}
	return strconv.Itoa(*v.at)
}

func (v whole) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < v.min || n > v.max {
		return fmt.Errorf("must be a whole number %s", v.bounds())
	}
	*v.at = n
	return nil
}

func (v whole) bounds() string { return fmt.Sprintf("from %d to %d", v.min, v.max) }

// decimal is a flag that takes a number within bounds.
type decimal struct {
	at       *float64
	min, max float64
}

func (v decimal) String() string {
	if v.at == nil || *v.at == 0 { // without a default
		return ""
	}
	return plain(*v.at)
}

func (v decimal) Set(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= v.min && f <= v.max) {
		return fmt.Errorf("must be a number %s", v.bounds())
	}
	*v.at = f
	return nil
}

func (v decimal) bounds() string { return fmt.Sprintf("from %s to %s", plain(v.min), plain(v.max)) }

// plain is f without an exponent and with no more digits than it has.
func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// span is a flag that takes a duration within bounds.
type span struct {
	at       *time.Duration
	min, max time.Duration
}

func (v span) String() string {
	if v.at == nil || *v.at == 0 { // without a default
		return ""
	}
	return short(*v.at)
}

func (v span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < v.min || d > v.max {
		return fmt.Errorf("must be a duration with its unit, such as 500ms or 10s, %s", v.bounds())
	}
	*v.at = d
	return nil
}

func (v span) bounds() string { return fmt.Sprintf("from %s to %s", short(v.min), short(v.max)) }

// pageName is a flag that takes the name of a page, in a directory that is there:
// the page is only written when everything has been played.
type pageName struct{ at *string }

func (v pageName) String() string {
	if v.at == nil {
		return ""
	}
	return *v.at
}

func (v pageName) Set(text string) error {
	if filepath.Ext(text) != ".html" {
		return errors.New("must be the name of a file that ends in .html")
	}
	if info, err := os.Stat(filepath.Dir(text)); err != nil || !info.IsDir() {
		return errors.New("must be in a directory that is there")
	}
	*v.at = text
	return nil
}

// short is d without the units that are zero: 1h, not 1h0m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
