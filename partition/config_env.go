package partition

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// ConfigFromEnv reads the configuration from environment variables that start
// with prefix and an underscore. With the prefix "DB":
//
//	DB_REPORTING_MAX_OPEN_CONNS=3         a pool's field, as in PoolConfig
//	DB_REPORTING_STATEMENT_TIMEOUT=2m     durations as in LoadConfig, or none
//	DB_REPORTING_DSN_ENV=REPLICA_URL      the variable that holds the DSN, or DB_REPORTING_DSN itself
//	DB_DEFAULT, DB_REQUIRE_TAG, DB_BUDGET, DB_MODE, DB_POOLER
//	                                      the fields of Config
//
// What stands between the prefix and the field, lower-cased, is the pool's name,
// so names with a dot, slash or hyphen cannot be configured this way. Every such
// variable makes its pool exist: beware of a prefix under which the environment
// keeps something else that ends like a field, such as DB_REPLICA_DSN.
//
// Empty values are ignored, as are variables that are not of this form, such as
// DB_HOST. But what starts like one for a standard pool and ends in no field,
// such as DB_REPORTING_MAX_CONNS, is refused as the slip that it is, and so are
// bad values, with an error that names the variable, never with a DSN in it. Of
// several problems the first in the order of the variables' names is returned.
//
// The prefix is required, since every variable that ends in _DSN would else be a
// pool. It may be given with its underscore.
func ConfigFromEnv(prefix string) (Config, error) {
	return configFromEnviron(prefix, os.Environ())
}

func configFromEnviron(prefix string, environ []string) (Config, error) {
	prefix = strings.TrimRight(prefix, "_")
	if prefix == "" {
		return Config{}, errors.New("partition: the prefix of the environment variables must not be empty")
	}
	e := envConfig{values: make(map[string]string), dsnFrom: make(map[workload.Name]string)}
	for _, entry := range environ {
		if variable, value, _ := strings.Cut(entry, "="); strings.TrimSpace(value) != "" {
			e.values[variable] = value
		}
	}
	for _, variable := range slices.Sorted(maps.Keys(e.values)) {
		rest, ours := strings.CutPrefix(variable, prefix+"_")
		if !ours {
			continue
		}
		if err := e.set(variable, rest, e.values[variable]); err != nil {
			return Config{}, fmt.Errorf("partition: %w", err)
		}
	}
	return e.config, nil
}

// envConfig is a Config in the making.
type envConfig struct {
	config  Config
	values  map[string]string        // the environment, without empty values
	dsnFrom map[workload.Name]string // the variable that a pool's DSN came from
}

// set takes one variable; rest is its name behind the prefix.
func (e *envConfig) set(variable, rest, value string) error {
	switch rest {
	case "DEFAULT":
		return e.setDefault(variable, strings.TrimSpace(value))
	case "REQUIRE_TAG":
		return parseValue(value, field{}, variable, &e.config.RequireTag)
	case "BUDGET":
		if err := parseValue(value, field{}, variable, &e.config.Budget); err != nil {
			return err
		}
		if e.config.Budget < 0 {
			return fmt.Errorf("%s must be positive, got %d", variable, e.config.Budget)
		}
		return nil
	case "MODE":
		e.config.Mode = Mode(strings.TrimSpace(value))
		return checkMode(e.config.Mode, variable)
	case "POOLER":
		e.config.Pooler = strings.TrimSpace(value)
		return checkPooler(e.config.Pooler, variable)
	}
	return e.setPool(variable, rest, value)
}

func (e *envConfig) setDefault(variable, value string) error {
	if err := validateName(value); err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	e.config.Default = workload.Name(value)
	return nil
}

func (e *envConfig) setPool(variable, rest, value string) error {
	pool, key := splitVariable(rest)
	if key == "" {
		return refuseSlip(variable, rest)
	}
	name := workload.Name(strings.ToLower(pool))
	if err := name.Validate(); err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	c := e.config.Pools[name]
	if err := e.setField(variable, name, &c, key, value); err != nil {
		return err
	}
	if e.config.Pools == nil {
		e.config.Pools = make(map[workload.Name]PoolConfig)
	}
	e.config.Pools[name] = c
	return nil
}

func (e *envConfig) setField(variable string, name workload.Name, c *PoolConfig, key, value string) error {
	if key == "dsn" || key == "dsn_env" {
		return e.setDSN(variable, name, c, key, value)
	}
	f, _ := fieldOf(key)
	if err := parseValue(value, f, variable, f.at(c)); err != nil {
		return err
	}
	return f.check(c, variable)
}

func (e *envConfig) setDSN(variable string, name workload.Name, c *PoolConfig, key, value string) error {
	if other, twice := e.dsnFrom[name]; twice {
		return fmt.Errorf("%s and %s exclude each other", other, variable)
	}
	e.dsnFrom[name] = variable
	c.DSN = value
	if key == "dsn" {
		return nil
	}
	dsn, err := dsnFrom(strings.TrimSpace(value), func(v string) (string, bool) { s, ok := e.values[v]; return s, ok })
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	c.DSN = dsn
	return nil
}

// splitVariable parts REPORTING_MAX_OPEN_CONNS into REPORTING and
// max_open_conns. The key is empty if there is no pool or no field. No field
// ends in another, so that at most one fits.
func splitVariable(rest string) (pool, key string) {
	for _, candidate := range poolKeys() {
		if pool, ok := strings.CutSuffix(rest, "_"+strings.ToUpper(candidate)); ok && pool != "" {
			return pool, candidate
		}
	}
	return "", ""
}

// refuseSlip returns an error if rest starts like a variable of a standard pool.
func refuseSlip(variable, rest string) error {
	for name := range standardPools {
		if strings.HasPrefix(rest, strings.ToUpper(string(name))+"_") {
			return fmt.Errorf("%s names no field of pool %q, known are %s",
				variable, string(name), strings.ToUpper(strings.Join(poolKeys(), ", ")))
		}
	}
	return nil
}

// parseValue is decodeValue for the text of an environment variable.
func parseValue(text string, f field, variable string, into any) error {
	text = strings.TrimSpace(text)
	var err error
	switch into := into.(type) {
	case *bool:
		if *into, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%s must be true or false, got %s", variable, shown(text))
		}
	case *int:
		if *into, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%s must be a whole number, got %s", variable, shown(text))
		}
	case *time.Duration:
		return parseDuration(text, f, variable, into)
	}
	return nil
}

// parseDuration reads "50ms", or "none" where that has a meaning.
func parseDuration(text string, f field, label string, into *time.Duration) error {
	if text == "none" && f.hasNone() {
		*into = NoTimeout
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("%s must be %s, got %s", label, durationForm(f), shown(text))
	}
	*into = d
	return nil
}

func durationForm(f field) string {
	if f.hasNone() {
		return `a duration such as "50ms", or "none"`
	}
	return `a duration such as "50ms"`
}

// dsnFrom refuses an empty variable too: it would silently mean the shared
// server.
func dsnFrom(variable string, lookup func(string) (string, bool)) (string, error) {
	dsn, set := lookup(variable)
	switch {
	case !set:
		return "", fmt.Errorf("environment variable %s is not set", shown(variable))
	case dsn == "":
		return "", fmt.Errorf("environment variable %s is empty", shown(variable))
	}
	return dsn, nil
}

// shown makes a text fit for an error: quoted, short, and without a password
// should a DSN have landed in the wrong field.
func shown(text string) string {
	if strings.ContainsAny(text, "@=/") {
		text = redactDSN(text)
	}
	return fmt.Sprintf("%.60q", text)
}

// validateName is [workload.Name.Validate], with the same caution.
func validateName(text string) error {
	err := workload.Name(text).Validate()
	if err != nil && redactDSN(text) != text {
		return errors.New("a workload's name is expected, got what looks like a DSN")
	}
	return err
}
