package fakedb

import (
	"maps"
	"regexp"
	"strings"
)

var assignment = regexp.MustCompile(`(?i)^(?:session\s+)?([\w.@]+)(?:\s*=\s*|\s+to\s+)(.*)$`)

// set understands the fake's k=v and what SQL makes of it.
func set(words []string) (step, bool) {
	values := make(map[string]string)
	for part := range strings.SplitSeq(strings.Join(words, " "), ",") {
		m := assignment.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return nil, false
		}
		values[fold(m[1])] = strings.Trim(m[2], `'"`)
	}
	return changing(func(c *conn) { maps.Copy(c.settings, values) }), true
}

func show(words []string) (step, bool) {
	name := fold(strings.Join(words, " "))
	return func(x *execution) error {
		x.c.s.mu.Lock()
		value, ok := x.c.settings[name]
		x.c.s.mu.Unlock()
		if !ok {
			return errf("42704", "unrecognized configuration parameter %q", name)
		}
		return x.cell(name, value)
	}, len(words) == 1
}

func reset(words []string) (step, bool) {
	if isAll(words) {
		return changing((*conn).resetAllLocked), true
	}
	name := fold(strings.Join(words, " "))
	return changing(func(c *conn) {
		delete(c.settings, name)
		if value, ok := c.s.config.settings[name]; ok {
			c.settings[name] = value
		}
	}), len(words) == 1
}

func discard(words []string) (step, bool) {
	return changing(func(c *conn) { c.resetAllLocked(); c.stmtEpoch++ }), isAll(words)
}

func deallocate(words []string) (step, bool) {
	return changing(func(c *conn) { c.stmtEpoch++ }), isAll(words)
}

func (x *execution) alter() error { return changing(func(c *conn) { c.s.schema++ })(x) }

func (c *conn) resetAllLocked() { c.settings = maps.Clone(c.s.config.settings) }

// changing is a step that changes the connection under the lock.
func changing(change func(*conn)) step {
	return func(x *execution) error {
		x.c.s.mu.Lock()
		defer x.c.s.mu.Unlock()
		change(x.c)
		return nil
	}
}

func isAll(words []string) bool { return len(words) == 1 && fold(words[0]) == "all" }
