package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
)

// print writes the report: the servers, the pools, what is worth knowing, and
// what would break.
func (f *findings) print(w io.Writer, instances int) {
	for _, d := range f.servers {
		d.print(w, instances)
	}
	f.printPools(w)
	for _, note := range f.notes {
		fmt.Fprintf(w, "\nnote: %s\n", note)
	}
	for _, problem := range f.breaks {
		fmt.Fprintf(w, "\nBREAKS: %s\n", problem)
	}
	if len(f.breaks) == 0 {
		fmt.Fprint(w, "\nNothing found that would break.\n")
	}
}

func (d *dbServer) print(w io.Writer, instances int) {
	fmt.Fprintf(w, "%s\n  %s\n", d.name(), d.role)
	if d.err == nil {
		c := d.capacity
		fmt.Fprintf(w, "  allows %d connections", c.max)
		if c.reserved > 0 {
			fmt.Fprintf(w, ", %d of them reserved", c.reserved)
		}
		if c.extra != "" {
			fmt.Fprintf(w, ", and %s", c.extra)
		}
		fmt.Fprintf(w, "; others use %d now\n", d.others)
	}
	pooled, beside := perInstance(d.sessions)
	fmt.Fprintf(w, "  needed: (%d in pools + %d for health checks and cancels) × %d = %d\n\n", pooled, beside, instances, (pooled+beside)*instances)
}

var poolHeadings = []string{"pool", "max open", "statement timeout", "on the server", "enforced by", "pooler"}

func (f *findings) printPools(w io.Writer) {
	if len(f.sessions) == 0 {
		return
	}
	rows := [][]string{poolHeadings}
	for _, s := range f.sessions {
		c := s.pool.Config()
		onServer := limitOrNone(s.limit)
		if s.kind.name == "" {
			onServer = "-"
		}
		rows = append(rows, []string{
			string(s.pool.Name()), strconv.Itoa(c.MaxOpenConns), limitOrNone(c.StatementTimeout), onServer,
			s.enforcedBy(), s.pooler,
		})
	}
	printColumns(w, rows)
}

func limitOrNone(d time.Duration) string {
	if d <= 0 {
		return "none"
	}
	return short(d)
}

// enforcedBy puts the library's label in words.
func (s *session) enforcedBy() string {
	switch label := s.pool.Stats().Enforcement; {
	case s.pool.Config().StatementTimeout <= 0 && s.limit <= 0:
		return "nobody"
	case label == string(stmttimeout.EnforcedBySession):
		return "server"
	case label == string(stmttimeout.EnforcedForSelects):
		return "server, for SELECT"
	default:
		return label
	}
}
