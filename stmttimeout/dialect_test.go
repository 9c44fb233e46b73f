package stmttimeout

import (
	"testing"
	"time"
)

func TestDialectsAreComparableAndEqualToThemselves(t *testing.T) {
	t.Parallel()
	makers := []func() Dialect{
		func() Dialect { return Postgres() },
		func() Dialect { return Postgres(WarnOnMismatch()) },
		MySQL, MariaDB, SQLite, ClientOnly,
	}
	seen := map[Dialect]int{}
	for i, maker := range makers {
		if maker() != maker() {
			t.Errorf("dialect %d is not equal to itself", i)
		}
		seen[maker()] = i
	}
	if len(seen) != len(makers) {
		t.Errorf("%d dialects are %d values", len(makers), len(seen))
	}
}

func TestDialectNames(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]Dialect{
		"postgres": Postgres(WarnOnMismatch()), "mysql": MySQL(), "mariadb": MariaDB(), "sqlite": SQLite(), "client-only": ClientOnly(),
	} {
		if d.Name() != want {
			t.Errorf("Name = %q, want %q", d.Name(), want)
		}
	}
}

func TestServersWithoutASettingAreAskedNothing(t *testing.T) {
	t.Parallel()
	for _, d := range []Dialect{SQLite(), ClientOnly()} {
		a, err := d.Setup(t.Context(), nil, Settings{StatementTimeout: time.Second, Workload: "oltp"})
		if err != nil || a.Enforcement != EnforcedByClient || a.StatementTimeout != 0 || a.Restore != nil || a.Warnings != nil {
			t.Errorf("%s: %+v, %v", d.Name(), a, err)
		}
		if v := d.Verdict(&myError{Number: 1969}); v != NotTimeout {
			t.Errorf("%s: %v", d.Name(), v)
		}
		for _, query := range []string{"SELECT 1", "SET statement_timeout = 0", "RESET ALL"} {
			if traits := d.Inspect(query); traits != 0 {
				t.Errorf("%s: %q: %v", d.Name(), query, traits)
			}
		}
	}
}

func TestSettingsThatCannotBeSentAreWarnings(t *testing.T) {
	t.Parallel()
	a, err := SQLite().Setup(t.Context(), nil, askedAll)
	if err != nil || len(a.Warnings) != 3 {
		t.Errorf("got %q, %v", a.Warnings, err)
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		EnforcedBySession.String():  "session",
		EnforcedForSelects.String(): "session-select",
		EnforcedByClient.String():   "client",
		NotTimeout.String():         "NotTimeout",
		Exceeded.String():           "Exceeded",
		ExceededOrCanceled.String(): "ExceededOrCanceled",
		Verdict(9).String():         "Verdict(9)",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTraitsHasAllOfTheFlags(t *testing.T) {
	t.Parallel()
	both := TouchesSettings | ServerEnforced
	if !both.Has(TouchesSettings) || !both.Has(both) || ServerEnforced.Has(both) || !Traits(0).Has(0) {
		t.Error("Has is wrong")
	}
}
