package main

import (
	"slices"
	"strings"
)

// servers collects from the lines that internal/testserver prints, one per
// package, which servers the tests ran on.
type servers struct {
	names []string // in the order of the lines
	used  map[string][]string
}

const serversPrefix = "servers: "

// note takes any line of output, such as
// "servers: PostgreSQL 15.18 (private), MariaDB none".
func (s *servers) note(line string) {
	list, ok := strings.CutPrefix(strings.TrimSpace(line), serversPrefix)
	if !ok {
		return
	}
	for part := range strings.SplitSeq(list, ", ") {
		if name, which, ok := strings.Cut(part, " "); ok {
			s.add(name, which)
		}
	}
}

func (s *servers) add(name, which string) {
	if s.used == nil {
		s.used = map[string][]string{}
	}
	seen, known := s.used[name]
	if !known {
		s.names = append(s.names, name)
	}
	if which != "none" && !slices.Contains(seen, which) {
		seen = append(seen, which)
	}
	s.used[name] = seen
}

// String is one line in the same form, for all packages together.
func (s *servers) String() string {
	if len(s.names) == 0 {
		return serversPrefix + "none"
	}
	var parts []string
	for _, name := range s.names {
		which := "none"
		if used := s.used[name]; len(used) > 0 {
			which = strings.Join(used, " and ")
		}
		parts = append(parts, name+" "+which)
	}
	return serversPrefix + strings.Join(parts, ", ")
}
