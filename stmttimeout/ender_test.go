package stmttimeout

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"strings"
	"testing"
)

// enders are the dialects that end sessions, with a victim each, its server, and the orders that are expected.
var enders = map[string]struct {
	Ender
	victim, server string
	polite, forced string
}{
	"mysql":    {mysql{}, thisSession, "db1:3306:1", "KILL QUERY 7", "KILL CONNECTION 7"},
	"mariadb":  {mariadb{}, thisSession, "db1:3306:1", "KILL QUERY 7", "KILL CONNECTION 7"},
	"postgres": {postgres{}, "7|1796000000.5|1795000000.25", "1795000000.25", "SELECT pg_cancel_backend(pid) FROM", "SELECT pg_terminate_backend(pid) FROM"},
}

func TestSessionIsEndedPolitelyOrByForce(t *testing.T) {
	t.Parallel()
	for name, e := range enders {
		for force, order := range map[bool]string{false: e.polite, true: e.forced} {
			s := &scriptedSession{row: []sqldriver.Value{e.server, "active"}}
			gone, err := e.End(t.Context(), s, e.victim, force)
			if gone || err != nil || len(s.sent) != 2 || !strings.HasPrefix(s.sent[1], order) {
				t.Errorf("%s: gone %v, %v, sent %q", name, gone, err, s.sent)
			}
		}
	}
}

func TestSessionThatIsGoneIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, e := range enders {
		s := &scriptedSession{row: []sqldriver.Value{[]byte(e.server), nil}}
		if gone, err := e.End(t.Context(), s, e.victim, true); !gone || err != nil || len(s.sent) != 1 {
			t.Errorf("%s: gone %v, %v, sent %q", name, gone, err, s.sent)
		}
	}
}

func TestNothingIsEndedOnAnotherServer(t *testing.T) {
	t.Parallel()
	for name, e := range enders {
		for _, victim := range []string{e.victim, "", "7", "7; DROP TABLE x|a|b", "|a|b"} {
			s := &scriptedSession{row: []sqldriver.Value{"another", "active"}}
			if gone, err := e.End(t.Context(), s, victim, true); gone || !errors.Is(err, ErrOtherServer) || len(s.sent) > 1 {
				t.Errorf("%s: %q: gone %v, %v, sent %q", name, victim, gone, err, s.sent)
			}
		}
	}
}

func TestControlSessionCanBeToldFromOthers(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"mysql": "USE information_schema", "mariadb": "USE information_schema", "postgres": "/control"} {
		s := answering("2s", "sqlbulkhead/control")
		if err := enders[name].Control(t.Context(), s); err != nil || len(s.sent) != 1 || !strings.Contains(s.sent[0], want) {
			t.Errorf("%s: %v, sent %q", name, err, s.sent)
		}
	}
}

func TestOrderThatComesTooLateIsNoError(t *testing.T) {
	t.Parallel()
	s := &lateSession{scriptedSession{row: []sqldriver.Value{"db1:3306:1", "Query"}}}
	if gone, err := MariaDB().(Ender).End(t.Context(), s, thisSession, false); gone || err != nil {
		t.Errorf("gone %v, %v", gone, err)
	}
}

// lateSession finds its victim gone when it gives the order.
type lateSession struct{ scriptedSession }

func (s *lateSession) Exec(context.Context, string) error { return &myError{Number: noSuchThread} }
