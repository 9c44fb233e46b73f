package partition

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
)

func TestModeComesFromEverySource(t *testing.T) {
	t.Parallel()
	fromJSON, err := LoadConfig(strings.NewReader(`{"mode": "observe"}`))
	if err != nil {
		t.Fatal(err)
	}
	fromEnv, err := configFromEnviron("DB", []string{"DB_MODE= observe"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		opts []Option
		want Mode
	}{
		"nothing":                   {nil, Enforce},
		"an option":                 {[]Option{WithMode(Observe)}, Observe},
		"JSON":                      {[]Option{WithConfig(fromJSON)}, Observe},
		"the environment":           {[]Option{WithConfig(fromEnv)}, Observe},
		"the later one":             {[]Option{WithMode(Enforce), WithConfig(fromEnv)}, Observe},
		"a config that is silent":   {[]Option{WithMode(Observe), WithConfig(Config{})}, Observe},
		"a plan, which is enforced": {[]Option{WithConfig(fromEnv), WithConfig(Plan{}.Config())}, Enforce},
	} {
		db, err := OpenDB(fakedb.New().Connector(), c.opts...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r, _ := RegistryOf(db)
		if got := r.Mode(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		db.Close()
	}
}

func TestBadModeIsRefusedWithTheTwoThatAreGood(t *testing.T) {
	t.Parallel()
	_, fromJSON := LoadConfig(strings.NewReader(`{"mode": "shadow"}`))
	_, fromEnv := configFromEnviron("DB", []string{"DB_MODE=shadow"})
	_, byOption := OpenDB(fakedb.New().Connector(), WithMode("shadow"))
	_, byConfig := OpenDB(fakedb.New().Connector(), WithConfig(Config{Mode: "shadow"}))
	for label, err := range map[string]error{"mode": fromJSON, "DB_MODE": fromEnv, "WithMode: mode": byOption, "Mode": byConfig} {
		want := "partition: " + label + ` must be "enforce" or "observe", got "shadow"`
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestModeIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Config{Mode: Observe})
	if err != nil || string(text) != `{"mode":"observe"}` {
		t.Errorf("%s, %v", text, err)
	}
}
