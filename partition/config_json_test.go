package partition

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestLoadConfigReadsEveryField(t *testing.T) {
	t.Setenv("SQLBULKHEAD_TEST_REPLICA", "postgres://gina:pw@replica/base")
	got, err := LoadConfig(strings.NewReader(`{
		"default": "reporting", "require_tag": true, "budget": 40, "pooler": "transaction",
		"pools": {
			"oltp": {
				"max_open_conns": 12, "max_idle_conns": -1, "max_waiting": -1, "acquire_timeout": "none", "statement_timeout": "1m30s",
				"dial_timeout": "2s", "conn_max_lifetime": "none", "conn_max_idle_time": "90s",
				"idle_in_transaction_timeout": "10s", "lock_timeout": "250ms", "read_only": true, "dsn": "host=a"
			},
			"reporting": {"dsn_env": "SQLBULKHEAD_TEST_REPLICA", "statement_timeout": "none", "max_open_conns": null},
			"batch": {}, "admin": null
		}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Default: workload.Reporting, RequireTag: true, Budget: 40, Pooler: "transaction", Pools: map[workload.Name]PoolConfig{
		workload.OLTP: {MaxOpenConns: 12, MaxIdleConns: -1, MaxWaiting: NoQueue, AcquireTimeout: NoWait, StatementTimeout: 90 * time.Second,
			DialTimeout: 2 * time.Second, ConnMaxLifetime: NoTimeout, ConnMaxIdleTime: 90 * time.Second,
			IdleInTransactionTimeout: 10 * time.Second, LockTimeout: 250 * time.Millisecond, ReadOnly: true, DSN: "host=a"},
		workload.Reporting: {DSN: "postgres://gina:pw@replica/base", StatementTimeout: NoTimeout},
		workload.Batch:     {},
		workload.Admin:     {},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v\nwant %+v", got, want)
	}
}

func TestEmptyObjectIsTheZeroConfig(t *testing.T) {
	t.Parallel()
	if c, err := LoadConfig(strings.NewReader(" {}\n")); err != nil || !reflect.DeepEqual(c, Config{}) {
		t.Fatalf("got %+v, %v", c, err)
	}
}

func TestLoadConfigRefusesWithPoolFieldAndValue(t *testing.T) {
	t.Setenv("SQLBULKHEAD_TEST_EMPTY", "")
	pool := func(body string) string { return `{"pools": {"reporting": {` + body + `}}}` }
	for doc, want := range map[string]string{
		``:                                    `partition: config: empty`,
		`null`:                                `config must be an object, got null`,
		`[1]`:                                 `config must be an object, got an array`,
		"{\n\"budget\": 3,\n}":                `config: line 3: `,
		`{"budget": 3`:                        `config: line 1: `,
		`{} {}`:                               `config: line 1: `,
		`{"budgets": 3}`:                      `unknown name "budgets", known are pools, default, require_tag, budget, mode and pooler`,
		`{"pooler": "session"}`:               `pooler must be "transaction", got "session"`,
		`{"Budget": 3}`:                       `unknown name "Budget"`,
		`{"budget": 3.5}`:                     `budget must be a whole number, got 3.5`,
		`{"budget": -3}`:                      `budget must be positive, got -3`,
		`{"budget": 1, "budget": 2}`:          `"budget" is given twice`,
		`{"require_tag": "yes"}`:              `require_tag must be true or false, got "yes"`,
		`{"default": 3}`:                      `default must be a string`,
		`{"default": "OLTP"}`:                 `default: workload: name must be 1 to 40`,
		`{"pools": [1]}`:                      `pools must be an object, got an array`,
		`{"pools": {"A b": {}}}`:              `workload: name must be 1 to 40 of a-z 0-9 . _ / -, starting with a letter or digit, got "A b"`,
		`{"pools": {"oltp": 3}}`:              `partition: pool "oltp" must be an object, got a number`,
		`{"pools": {"oltp": {}, "oltp": {}}}`: `"oltp" is given twice`,
		pool(`"max_conns": 3`):                `partition: pool "reporting": unknown name "max_conns", known are max_open_conns, `,
		pool(`"max_open_conns": "3"`):         `partition: pool "reporting": max_open_conns must be a whole number, got "3"`,
		pool(`"max_open_conns": -3`):          `partition: pool "reporting": max_open_conns must be positive, got -3`,
		pool(`"max_open_conns": 99999999999999999999`): `max_open_conns must be a whole number, got 99999999999999999999`,
		pool(`"max_waiting": -2`):                      `pool "reporting": max_waiting must be positive, or -1 (NoQueue), got -2`,
		pool(`"acquire_timeout": "50"`):                `pool "reporting": acquire_timeout must be a duration such as "50ms", or "none", got "50"`,
		pool(`"acquire_timeout": 50`):                  `pool "reporting": acquire_timeout must be a duration such as "50ms", or "none", got 50`,
		pool(`"acquire_timeout": "-1ns"`):              `acquire_timeout must be a duration such as "50ms", or "none", got "-1ns"`,
		pool(`"dial_timeout": "none"`):                 `pool "reporting": dial_timeout must be a duration such as "50ms", got "none"`,
		pool(`"lock_timeout": "none"`):                 `lock_timeout must be a duration such as "50ms", got "none"`,
		pool(`"read_only": 1`):                         `pool "reporting": read_only must be true or false, got 1`,
		pool(`"dsn": 5`):                               `pool "reporting": dsn must be a string`,
		pool(`"dsn": "a", "dsn_env": "HOME"`):          `pool "reporting": dsn and dsn_env exclude each other`,
		pool(`"dsn_env": "SQLBULKHEAD_NOT_SET"`):       `pool "reporting": dsn_env: environment variable "SQLBULKHEAD_NOT_SET" is not set`,
		pool(`"dsn_env": "SQLBULKHEAD_TEST_EMPTY"`):    `pool "reporting": dsn_env: environment variable "SQLBULKHEAD_TEST_EMPTY" is empty`,
		pool(`"dsn_env": true`):                        `pool "reporting": dsn_env must be a string`,
	} {
		c, err := LoadConfig(strings.NewReader(doc))
		if err == nil || !strings.HasPrefix(err.Error(), "partition: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", doc, err, want)
		}
		if !reflect.DeepEqual(c, Config{}) {
			t.Errorf("%s: half a configuration came back: %+v", doc, c)
		}
	}
}

func TestNoErrorOfAMisplacedDSNHoldsItsPassword(t *testing.T) {
	t.Parallel()
	for _, dsn := range misplaced {
		for _, doc := range []string{
			`%q`, `{"pools": %q}`, `{"pools": {"oltp": %q}}`, `{"budget": %q}`, `{"require_tag": %q}`, `{"mode": %q}`, `{"pooler": %q}`,
			`{"pools": {"oltp": {"acquire_timeout": %q}}}`, `{"pools": {"oltp": {"max_waiting": %q}}}`,
			`{"default": %q}`, `{"pools": {%q: {}}}`, `{"pools": {"oltp": {"dsn_env": %q}}}`,
			`{"pools": {"oltp": {"read_only": %q}}}`, `{"pools": {"oltp": {"dsn": [%q]}}}`,
			`{%q: 1}`, `{"pools": {"oltp": {%q: 1}}}`, `{"budget": {"dsn": %q}}`, `{"budget": [%q]}`,
		} {
			doc = fmt.Sprintf(doc, dsn)
			if _, err := LoadConfig(strings.NewReader(doc)); err == nil || strings.Contains(err.Error(), "flower") {
				t.Errorf("%s: %v", doc, err)
			}
		}
	}
}

// misplaced are DSNs that somebody writes into the wrong field.
var misplaced = []string{
	"postgres://gina:Wall%40flower@replica/base", "password=Wallflower host=db", "host=db password=Wallflower", "user=gina\tpassword=Wallflower",
	"PASSWORD='Wallflower' host=db", "gina:Wallflower@tcp(db)/base", "gina:Wallflower@db",
}

func TestReadErrorIsReturned(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	if _, err := LoadConfig(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
}

func TestMarshalledConfigLoadsBackEqual(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 500 {
		want := Config{Default: []workload.Name{"", "oltp"}[r.IntN(2)], RequireTag: r.IntN(2) == 0, Budget: r.IntN(3)}
		if i > 0 {
			none := PoolConfig{MaxWaiting: NoQueue, AcquireTimeout: NoWait, StatementTimeout: NoTimeout, ConnMaxLifetime: NoTimeout}
			want.Pools = map[workload.Name]PoolConfig{"a": randomPool(r, 1+i), "b/c": randomPool(r, i).merge(none)}
		}
		data, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := LoadConfig(strings.NewReader(string(data)))
		if err != nil || !reflect.DeepEqual(loaded, want) {
			t.Fatalf("%s\ngot  %+v, %v\nwant %+v", data, loaded, err, want)
		}
		var decoded Config
		if err := json.Unmarshal(data, &decoded); err != nil || !reflect.DeepEqual(decoded, want) {
			t.Fatalf("%s\ngot  %+v, %v", data, decoded, err)
		}
	}
}

func TestMarshalledConfigHoldsNoPassword(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(PoolConfig{MaxOpenConns: 2, ReadOnly: true, DSN: "postgres://gina:Wall%40flower@replica/base"})
	const want = `{"max_open_conns":2,"read_only":true,"dsn":"postgres://gina:xxxxx@replica/base"}`
	if err != nil || string(data) != want {
		t.Fatalf("got  %s, %v\nwant %s", data, err, want)
	}
}

func TestUnmarshalKeepsWhatTheDocumentLeavesOut(t *testing.T) {
	t.Parallel()
	c := Config{Budget: 7, Default: "etl", Pools: map[workload.Name]PoolConfig{"etl": {MaxOpenConns: 3, LockTimeout: time.Second}}}
	for _, doc := range []string{`null`, `{}`, `{"pools": null}`, `{"default": null, "pools": {"etl": {"lock_timeout": "2s"}}}`} {
		if err := json.Unmarshal([]byte(doc), &c); err != nil {
			t.Fatal(err)
		}
	}
	if c.Budget != 7 || c.Default != "etl" || c.Pools["etl"] != (PoolConfig{MaxOpenConns: 3, LockTimeout: 2 * time.Second}) {
		t.Fatalf("got %+v", c)
	}
	pool := PoolConfig{MaxOpenConns: 3}
	if err := json.Unmarshal([]byte(`null`), &pool); err != nil || pool.MaxOpenConns != 3 {
		t.Fatalf("got %v, %v", pool, err)
	}
	if err := json.Unmarshal([]byte(`{"x": 1}`), &pool); err == nil || !strings.Contains(err.Error(), `partition: pool: unknown name "x"`) {
		t.Fatalf("got %v", err)
	}
}

func FuzzLoadConfigNeverPanics(f *testing.F) {
	f.Add([]byte(`{"pools": {"oltp": {"max_open_conns": 3, "dsn": "a:b@c"}}, "default": "x"}`))
	f.Add([]byte(`{"pools": {"\ud800": null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := LoadConfig(strings.NewReader(string(data)))
		if err != nil {
			return
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := LoadConfig(strings.NewReader(string(again))); err != nil {
			t.Fatalf("%s became %s: %v", data, again, err)
		}
	})
}
