package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// result is what a benchmark printed, by unit: ns/op, allocs/op, p99.9/p50.
type result map[string]float64

// results are the best of each benchmark, by its name without the number of
// processors.
type results map[string]result

var procs = regexp.MustCompile(`-\d+$`)

// add reads the output of go test -bench.
func (r results) add(text io.Reader) error {
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		one := result{}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("%q: %w", lines.Text(), err)
			}
			one[fields[i+1]] = v
		}
		r.keep(procs.ReplaceAllString(fields[0], ""), one)
	}
	return lines.Err()
}

// keep keeps the best of every unit; less is better in all of them.
func (r results) keep(name string, one result) {
	if r[name] == nil {
		r[name] = one
		return
	}
	for unit, v := range one {
		r[name][unit] = min(v, r[name][unit])
	}
}

// bound is what a benchmark must hold, in all its variants but those that are
// printed beside them.
type bound struct {
	ns, allocs float64 // at most this much more than plain, or in all if there is no plain twin; 0 allocs: any
	where      float64 // ns that plain takes where ns was set; a slower machine may take longer in proportion
	under      string  // the twin that must add more than this one; in place of ns
	ratio      float64 // p99.9/p50, at most
}

var bounds = map[string]bound{
	"BenchmarkExec":              {ns: 300, allocs: 3, where: 150},
	"BenchmarkQueryRow":          {ns: 400, allocs: 4, where: 410},
	"BenchmarkExecCancellable":   {under: "plain-withtimeout", allocs: 4},
	"BenchmarkRejectionWhenFull": {ns: 1000, allocs: 6},
	"BenchmarkWait":              {ratio: 2},

	// With metrics on, 1.3 times as much as without.
	"BenchmarkExecWithPrometheus":     {ns: 390, allocs: 3, where: 150},
	"BenchmarkExecWithOTel":           {ns: 390, allocs: 3, where: 150},
	"BenchmarkQueryRowWithPrometheus": {ns: 520, allocs: 4, where: 410},
	"BenchmarkQueryRowWithOTel":       {ns: 520, allocs: 4, where: 410},
	"BenchmarkScrape":                 {ns: 4.25e6, where: 0.75e6}, // 5 ms in all
}

// beside are variants without a bound: where the guard alone keeps the
// statement timeout, and where OpenTelemetry's SDK records every call.
var beside = []string{"guard-alone", "sdk"}

// print writes a line per benchmark and reports whether all bounds hold.
func (r results) print(out io.Writer) (ok bool, err error) {
	ok = true
	fmt.Fprintln(out, "the best of all runs; a factor is how much slower plain is here than where the bound was set")
	fmt.Fprintf(out, "%-42s %10s %7s   %-22s %s\n", "benchmark", "ns/op", "allocs", "more than plain", "must hold")
	for _, name := range slices.Sorted(maps.Keys(r)) {
		verdict, holds := r.verdict(name)
		ok = ok && holds
		_, err = fmt.Fprintf(out, "%-42s %10.0f %7.0f   %-22s %s\n",
			strings.TrimPrefix(name, "Benchmark"), r[name]["ns/op"], r[name]["allocs/op"], r.difference(name), verdict)
	}
	return ok, err
}

func (r results) plain(name string) (result, bool) {
	group, variant, _ := strings.Cut(name, "/")
	p, ok := r[group+"/plain"]
	return p, ok && variant != "plain"
}

func (r results) difference(name string) string {
	if ratio, ok := r[name]["p99.9/p50"]; ok {
		return fmt.Sprintf("p99.9/p50 = %.1f", ratio)
	}
	p, ok := r.plain(name)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%+.0f ns, %+.0f allocs", r[name]["ns/op"]-p["ns/op"], r[name]["allocs/op"]-p["allocs/op"])
}

// verdict says what the benchmark must hold and whether it does.
func (r results) verdict(name string) (text string, holds bool) {
	group, variant, _ := strings.Cut(name, "/")
	b, ok := bounds[group]
	if !ok || strings.HasPrefix(variant, "plain") || slices.Contains(beside, variant) {
		return "", true
	}
	p, _ := r.plain(name)
	few := b.allocs == 0 || r[name]["allocs/op"]-p["allocs/op"] <= b.allocs
	switch {
	case b.ratio > 0:
		text = fmt.Sprintf("p99.9/p50 ≤ %.0f", b.ratio)
		holds = r[name]["p99.9/p50"] <= b.ratio
	case b.under != "":
		text = fmt.Sprintf("< %s, ≤ %.0f allocs", b.under, b.allocs)
		holds = r[name]["ns/op"] < r[group+"/"+b.under]["ns/op"] && few
	default:
		slower := 1.0
		if b.where > 0 {
			slower = max(1, p["ns/op"]/b.where)
		}
		text = fmt.Sprintf("≤ %.0f ns × %.2f", b.ns, slower)
		if b.allocs > 0 {
			text += fmt.Sprintf(", ≤ %.0f allocs", b.allocs)
		}
		holds = r[name]["ns/op"]-p["ns/op"] <= b.ns*slower && few
	}
	if holds {
		return text + ": holds", true
	}
	return text + ": DOES NOT HOLD", false
}
