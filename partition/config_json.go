package partition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

var (
	_ json.Marshaler   = PoolConfig{}
	_ json.Unmarshaler = (*PoolConfig)(nil)
	_ json.Unmarshaler = (*Config)(nil)
)

// LoadConfig reads one JSON object:
//
//	{
//	  "default": "oltp",
//	  "require_tag": false,
//	  "budget": 20,
//	  "pools": {
//	    "oltp":      {"acquire_timeout": "80ms"},
//	    "reporting": {"max_open_conns": 4, "statement_timeout": "2m", "dsn_env": "REPLICA_DSN"},
//	    "etl":       {"max_open_conns": 2, "max_waiting": -1, "statement_timeout": "none"}
//	  }
//	}
//
// The names are those of [Config] and [PoolConfig] in snake_case. Durations are
// written "50ms", "5s", "1h30m", and "none" for NoWait and NoTimeout; -1 in
// max_waiting is NoQueue. What is left out, or null, is unset. Instead of dsn,
// dsn_env names the environment variable that holds the DSN, so that the file
// need not hold a password.
//
// Unknown and repeated names are refused at every depth, as are values out of
// range and anything behind the object, with an error that names pool, field and
// value. So is a dsn_env whose variable is unset or empty: the pool would else
// share the server that it was meant to leave. No error holds a DSN. What needs
// to know all pools, such as the budget, is checked when the registry is opened.
func LoadConfig(r io.Reader) (Config, error) {
	if r == nil {
		return Config{}, errors.New("partition: config: reader is nil")
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return Config{}, fmt.Errorf("partition: config: %w", err)
	}
	var c Config
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return Config{}, syntaxError(data, err)
	}
	if err := c.decode(data); err != nil {
		return Config{}, fmt.Errorf("partition: %w", err)
	}
	return c, nil
}

// syntaxError adds the line, which the standard library leaves to be counted.
func syntaxError(data []byte, err error) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("partition: config: empty")
	}
	var at *json.SyntaxError
	if !errors.As(err, &at) {
		return fmt.Errorf("partition: config: %w", err)
	}
	before := data[:min(max(int(at.Offset), 0), len(data))]
	return fmt.Errorf("partition: config: line %d: %w", 1+bytes.Count(before, []byte("\n")), err)
}

// UnmarshalJSON is LoadConfig for a Config inside something larger. Fields that
// are left out keep their value.
func (c *Config) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	if err := c.decode(data); err != nil {
		return fmt.Errorf("partition: %w", err)
	}
	return nil
}

func (c *Config) decode(data []byte) error {
	return eachMember("config", data, func(key string, raw json.RawMessage) error {
		switch key {
		case "pools":
			return c.decodePools(raw)
		case "default":
			return decodeDefault(raw, &c.Default)
		case "require_tag":
			return decodeValue(raw, field{}, key, &c.RequireTag)
		case "budget":
			return decodeBudget(raw, &c.Budget)
		case "mode":
			return decodeMode(raw, &c.Mode)
		case "pooler":
			if err := decodeValue(raw, field{}, key, &c.Pooler); err != nil {
				return err
			}
			return checkPooler(c.Pooler, key)
		}
		return fmt.Errorf("config: unknown name %s, known are pools, default, require_tag, budget, mode and pooler", shown(key))
	})
}

func (c *Config) decodePools(data json.RawMessage) error {
	if isNull(data) {
		return nil
	}
	if c.Pools == nil {
		c.Pools = make(map[workload.Name]PoolConfig)
	}
	return eachMember("pools", data, func(key string, raw json.RawMessage) error {
		if err := validateName(key); err != nil {
			return fmt.Errorf("pools: %w", err)
		}
		name := workload.Name(key)
		pool := c.Pools[name]
		if isNull(raw) {
			raw = json.RawMessage("{}")
		}
		if err := pool.decode("pool "+strconv.Quote(key), raw); err != nil {
			return err
		}
		c.Pools[name] = pool
		return nil
	})
}

func decodeDefault(raw json.RawMessage, name *workload.Name) error {
	text := string(*name)
	if err := decodeValue(raw, field{}, "default", &text); err != nil {
		return err
	}
	if err := validateName(text); err != nil && text != "" {
		return fmt.Errorf("default: %w", err)
	}
	*name = workload.Name(text)
	return nil
}

func decodeMode(raw json.RawMessage, mode *Mode) error {
	text := string(*mode)
	if err := decodeValue(raw, field{}, "mode", &text); err != nil || text == "" {
		return err
	}
	*mode = Mode(text)
	return checkMode(*mode, "mode")
}

func decodeBudget(raw json.RawMessage, budget *int) error {
	if err := decodeValue(raw, field{}, "budget", budget); err != nil {
		return err
	}
	if *budget < 0 {
		return fmt.Errorf("budget must be positive, got %d", *budget)
	}
	return nil
}

// UnmarshalJSON reads one pool as [LoadConfig] does. Fields that are left out
// keep their value.
func (c *PoolConfig) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	if err := c.decode("pool", data); err != nil {
		return fmt.Errorf("partition: %w", err)
	}
	return nil
}

// decode reads the object that errors call what.
func (c *PoolConfig) decode(what string, data []byte) error {
	dsnKeys := 0
	return eachMember(what, data, func(key string, raw json.RawMessage) error {
		if key == "dsn" || key == "dsn_env" {
			dsnKeys++
		}
		err := c.decodeMember(key, raw)
		if err == nil && dsnKeys == 2 {
			err = errors.New("dsn and dsn_env exclude each other")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

func (c *PoolConfig) decodeMember(key string, raw json.RawMessage) error {
	if key == "dsn_env" {
		return c.decodeDSNEnv(raw)
	}
	if f, ok := fieldOf(key); ok {
		return c.decodeField(f, raw)
	}
	return fmt.Errorf("unknown name %s, known are %s", shown(key), strings.Join(poolKeys(), ", "))
}

func (c *PoolConfig) decodeField(f field, raw json.RawMessage) error {
	if err := decodeValue(raw, f, f.key, f.at(c)); err != nil {
		return err
	}
	return f.check(c, f.key)
}

func (c *PoolConfig) decodeDSNEnv(raw json.RawMessage) error {
	var variable string
	if err := decodeValue(raw, field{}, "dsn_env", &variable); err != nil || isNull(raw) {
		return err
	}
	dsn, err := dsnFrom(variable, os.LookupEnv)
	if err != nil {
		return fmt.Errorf("dsn_env: %w", err)
	}
	c.DSN = dsn
	return nil
}

// decodeValue reads raw into into. Null leaves it alone, as encoding/json has
// it. The errors name key and value, but no value where a DSN is expected.
func decodeValue(raw json.RawMessage, f field, key string, into any) error {
	if isNull(raw) {
		return nil
	}
	switch into := into.(type) {
	case *string:
		if json.Unmarshal(raw, into) != nil {
			return fmt.Errorf("%s must be a string", key)
		}
	case *bool:
		if json.Unmarshal(raw, into) != nil {
			return fmt.Errorf("%s must be true or false, got %s", key, shownJSON(raw))
		}
	case *int:
		if json.Unmarshal(raw, into) != nil {
			return fmt.Errorf("%s must be a whole number, got %s", key, shownJSON(raw))
		}
	case *time.Duration:
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return fmt.Errorf("%s must be %s, got %s", key, durationForm(f), shownJSON(raw))
		}
		return parseDuration(text, f, key, into)
	}
	return nil
}

// MarshalJSON writes what is set, in the form that [LoadConfig] reads, and reads
// back equal but for the DSN: its password is redacted, so that a configuration
// can be shown. Where it is to be read back, give the DSN by dsn_env.
func (c PoolConfig) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for _, f := range poolFields {
		value := jsonValue(f, &c)
		if value == nil {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(b, `"`+f.key+`":`...), text...)
	}
	return append(b, '}'), nil
}

// jsonValue returns nil for what is unset.
func jsonValue(f field, c *PoolConfig) any {
	switch p := f.at(c).(type) {
	case *int:
		if *p != 0 {
			return *p
		}
	case *bool:
		if *p {
			return true
		}
	case *string:
		if *p != "" {
			return redactDSN(*p)
		}
	case *time.Duration:
		switch {
		case *p == NoTimeout && f.hasNone():
			return "none"
		case *p != 0:
			return p.String()
		}
	}
	return nil
}

// eachMember calls do for each member of the object in data, in order; errors
// about the object itself call it what. Unlike encoding/json it takes names as
// they are written, and none twice: of a pool configured twice one half would be
// lost without a word.
func eachMember(what string, data []byte, do func(key string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return fmt.Errorf("%s must be an object, got %s", what, kindOf(data))
	}
	seen := make(map[string]bool)
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		name := key.(string) // the names of a valid object are strings
		if seen[name] {
			return fmt.Errorf("%s: %s is given twice", what, shown(name))
		}
		seen[name] = true
		if err := do(name, value); err != nil {
			return err
		}
	}
	return nil
}

// shownJSON is shown for a value.
func shownJSON(raw json.RawMessage) string {
	var text string
	switch kind := kindOf(raw); {
	case json.Unmarshal(raw, &text) == nil:
		return shown(text)
	case kind == "an array", kind == "an object":
		return kind
	}
	return fmt.Sprintf("%.60s", raw)
}

// kindOf names what data is, without its value, which may hold a DSN.
func kindOf(data []byte) string {
	switch data = bytes.TrimSpace(data); {
	case len(data) == 0:
		return "nothing"
	case data[0] == '[':
		return "an array"
	case data[0] == '{':
		return "an object"
	case data[0] == '"':
		return "a string"
	case data[0] == 'n':
		return "null"
	case data[0] == 't', data[0] == 'f':
		return "a boolean"
	}
	return "a number"
}

func isNull(data []byte) bool { return string(bytes.TrimSpace(data)) == "null" }
