package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/report"
)

var headings = []string{"arrangement", "logins ok", "failed", "p50", "p99", "max", "reports ok", "rejected"}

// printTable writes a row per arrangement, and below it the errors that have
// nothing to do with a pool.
func printTable(w io.Writer, results []result, dsn string) {
	rows := [][]string{headings}
	for _, r := range results {
		rows = append(rows, []string{
			r.name, strconv.Itoa(r.loginsOK), strconv.Itoa(r.loginsFailed),
			latency(r.p50), latency(r.p99), latency(r.max),
			strconv.Itoa(r.reportsOK), strconv.Itoa(r.reportsRejected),
		})
	}
	printColumns(w, rows)
	for _, r := range results {
		printBroken(w, r.name, "logins", r.loginsBroken, r.firstLoginErr, dsn)
		printBroken(w, r.name, "reports", r.reportsBroken, r.firstReportErr, dsn)
	}
}

func printBroken(w io.Writer, name, what string, n int, first error, dsn string) {
	if n > 0 {
		fmt.Fprintf(w, "%s: %d %s ended in another error, the first: %v\n", name, n, what, explain(first, dsn))
	}
}

// printColumns aligns the first column left and the others right.
func printColumns(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		fmt.Fprintf(&line, "%-*s", widths[0], row[0])
		for i, cell := range row[1:] {
			fmt.Fprintf(&line, "  %*s", widths[i+1], cell)
		}
		fmt.Fprintln(w, line.String())
	}
}

// latency is d as the report has it, in one word.
func latency(d time.Duration) string {
	return strings.ReplaceAll(report.Millis(d).String(), " ", "")
}
