package partition

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// NoWait and NoTimeout are what a duration of a [PoolConfig] is set to where
// "none" is meant; zero means the default. In JSON and in the environment both
// are written "none".
const (
	// NoWait as AcquireTimeout: never queue. A caller that finds no free permit
	// is rejected at once. A dial that is needed is still waited for, at most
	// DialTimeout: an idle pool would otherwise refuse its first caller.
	NoWait time.Duration = -1
	// NoTimeout as StatementTimeout, ConnMaxLifetime or ConnMaxIdleTime: no
	// such limit.
	NoTimeout time.Duration = -1
)

// NoQueue as MaxWaiting: nobody waits; a caller that finds no free permit is
// rejected at once, with the error of a full queue.
const NoQueue = -1

// PoolConfig is what one workload pool is made of.
//
// In every field zero means unset: the value that an earlier option gave, else
// the default. Negative values other than the named constants are refused when
// the registry is opened, with an error that names pool, field, value and
// bound. A PoolConfig that [Pool.Config] returns is the effective one: all
// defaults are filled in, and an absent limit reads NoWait, NoTimeout, NoQueue,
// or 0 in MaxIdleConns.
//
// Printed with package fmt, logged with log/slog and written as JSON, the
// password of the DSN is redacted.
type PoolConfig struct {
	// MaxOpenConns is the hard cap on this pool's connections, and the number
	// of its permits. 0: 10, 3, 2 and 2 for the standard pools oltp, reporting,
	// batch and admin, or their share of the budget; required for other names.
	// [Size] computes it from traffic.
	MaxOpenConns int

	// MaxIdleConns is how many connections are kept open while nobody uses
	// them. 0: MaxOpenConns, to which more is cut. Negative: none; every
	// acquire then dials, so not for latency.
	MaxIdleConns int

	// MaxWaiting bounds the queue of callers that wait for a permit; the next
	// one is rejected at once. 0: 20, 3, 4 and 2 for oltp, reporting, batch and
	// admin; for other names MaxOpenConns, but at most 10. NoQueue: none.
	MaxWaiting int

	// AcquireTimeout is the longest that a caller waits for a connection: queue
	// and dialling together. A caller's own deadline, if sooner, holds. 0:
	// 100ms, 50ms, 1s and 5s for oltp, reporting, batch and admin; 100ms for
	// other names. NoWait: never queue.
	AcquireTimeout time.Duration

	// StatementTimeout is the longest that one statement runs, set on the
	// server where it can be and guarded by the client behind it. 0: 5s, 60s,
	// 15m and NoTimeout for oltp, reporting, batch and admin; 30s for other
	// names. NoTimeout: none of ours; the server's own setting, if any, holds.
	StatementTimeout time.Duration

	// DialTimeout bounds the making of one physical connection, session set-up
	// included. The dial goes on when the caller that asked for it has left,
	// and its connection serves the next one. 0: 5s. It cannot be switched off:
	// a dial that hangs holds a permit.
	DialTimeout time.Duration

	// ConnMaxLifetime is how old a connection may grow before it is replaced,
	// less a jitter so that a pool is not replaced all at once. 0: 30m.
	// NoTimeout: any age.
	ConnMaxLifetime time.Duration

	// ConnMaxIdleTime is how long a connection may lie unused before it is
	// closed. 0: 5m. NoTimeout: any time.
	ConnMaxIdleTime time.Duration

	// LeakAfter is how long a connection may be held before that is reported, once: in the log, to a [LeakObserver] and in
	// Stats, with what the holder is doing. 0 or NoTimeout: never. A context of [workload.LongHeld] is exempt.
	LeakAfter time.Duration

	// MaxHold is how long a connection may be held before it is taken back: what it runs is cancelled and ended on the
	// server, the connection is thrown away, its permit serves somebody else, and every further call of the late holder
	// gets [ErrReclaimed]. 0 or NoTimeout: any time. A context of [workload.LongHeld] is exempt.
	MaxHold time.Duration

	// LeakStacks keeps, for each holder, the stack that acquired, for reports and errors. It costs every acquire about a
	// microsecond. Once true, a later option cannot make it false.
	LeakStacks bool

	// IdleInTransactionTimeout is how long a session may sit idle inside a
	// transaction before the server ends it (PostgreSQL; MariaDB, rounded up to
	// a second). 0: the server's own setting. There is no value for
	// none.
	IdleInTransactionTimeout time.Duration

	// LockTimeout is the longest that a statement waits for one lock, on
	// servers that have such a setting (PostgreSQL; MariaDB and MySQL, rounded up
	// to a second). 0: the server's own
	// setting. There is no value for none.
	LockTimeout time.Duration

	// ReadOnly makes transactions read-only by default, on servers that have
	// such a setting. It guards against mistakes, not against malice: a session
	// can switch it off. Once true, a later option cannot make it false.
	ReadOnly bool

	// DSN is this pool's own server, a read replica for example, in the syntax
	// of the same driver. Empty: the data source that the registry is opened
	// with. A pool with its own server does not count against the budget. Pools
	// with the same DSN are on one server.
	DSN string
}

// Config is the configuration of a whole registry, for [WithConfig]. It is what
// [LoadConfig] and [ConfigFromEnv] return. The zero Config changes nothing.
type Config struct {
	// Pools holds what is set per workload, laid field by field over what was
	// set before. A name that is not there yet becomes a new pool.
	Pools map[workload.Name]PoolConfig `json:"pools,omitzero"`
	// Default is the pool of untagged contexts. Empty: unchanged, at first oltp.
	Default workload.Name `json:"default,omitempty"`
	// RequireTag refuses untagged contexts instead.
	RequireTag bool `json:"require_tag,omitempty"`
	// Budget is how many connections the pools of the shared server may have
	// together; see [WithBudget]. 0: no budget.
	Budget int `json:"budget,omitempty"`
	// Mode is whether the walls are enforced or only watched: see [WithMode]. Empty: unchanged, at first Enforce.
	Mode Mode `json:"mode,omitempty"`
	// Pooler is "transaction" where PostgreSQL is reached through a pooler that lends its sessions by the transaction: the
	// same as [WithDialect] with [stmttimeout.TransactionPooling]. Empty: unchanged, at first a server of one's own or a
	// pooler that keeps a session for each connection.
	Pooler string `json:"pooler,omitempty"`
}

// Merge returns c with over laid on it, field by field, as a [WithConfig] behind another is: what over sets wins, and what it
// leaves unset stays. RequireTag, ReadOnly and LeakStacks cannot be unset. It changes neither. So what the environment says
// can have the last word on a file, and on the next one that [Registry.Apply] gets.
func (c Config) Merge(over Config) Config {
	merged := Config{
		Default:    cmp.Or(over.Default, c.Default),
		RequireTag: c.RequireTag || over.RequireTag,
		Budget:     cmp.Or(over.Budget, c.Budget),
		Mode:       cmp.Or(over.Mode, c.Mode),
		Pooler:     cmp.Or(over.Pooler, c.Pooler),
		Pools:      maps.Clone(c.Pools),
	}
	if merged.Pools == nil && over.Pools != nil {
		merged.Pools = make(map[workload.Name]PoolConfig)
	}
	for name, pool := range over.Pools {
		merged.Pools[name] = merged.Pools[name].merge(pool)
	}
	return merged
}

// checkPooler refuses what is no value of Config.Pooler.
func checkPooler(value, label string) error {
	if value != "" && value != poolerTransaction {
		return fmt.Errorf("%s must be %q, got %s", label, poolerTransaction, shown(value))
	}
	return nil
}

const poolerTransaction = "transaction"

// String returns c as JSON, the DSN's password redacted.
func (c PoolConfig) String() string {
	b, err := c.MarshalJSON()
	if err != nil {
		return "partition.PoolConfig(" + err.Error() + ")"
	}
	return string(b)
}

// GoString is String, so that %#v prints no password either.
func (c PoolConfig) GoString() string { return "partition.PoolConfig" + c.String() }

// merge lays over on c, field by field: what over sets wins, what it leaves at
// zero stays. ReadOnly cannot be unset, since false and unset are the same.
func (c PoolConfig) merge(over PoolConfig) PoolConfig {
	return PoolConfig{
		MaxOpenConns:             cmp.Or(over.MaxOpenConns, c.MaxOpenConns),
		MaxIdleConns:             cmp.Or(over.MaxIdleConns, c.MaxIdleConns),
		MaxWaiting:               cmp.Or(over.MaxWaiting, c.MaxWaiting),
		AcquireTimeout:           cmp.Or(over.AcquireTimeout, c.AcquireTimeout),
		StatementTimeout:         cmp.Or(over.StatementTimeout, c.StatementTimeout),
		DialTimeout:              cmp.Or(over.DialTimeout, c.DialTimeout),
		ConnMaxLifetime:          cmp.Or(over.ConnMaxLifetime, c.ConnMaxLifetime),
		ConnMaxIdleTime:          cmp.Or(over.ConnMaxIdleTime, c.ConnMaxIdleTime),
		IdleInTransactionTimeout: cmp.Or(over.IdleInTransactionTimeout, c.IdleInTransactionTimeout),
		LockTimeout:              cmp.Or(over.LockTimeout, c.LockTimeout),
		LeakAfter:                cmp.Or(over.LeakAfter, c.LeakAfter),
		MaxHold:                  cmp.Or(over.MaxHold, c.MaxHold),
		LeakStacks:               c.LeakStacks || over.LeakStacks,
		ReadOnly:                 c.ReadOnly || over.ReadOnly,
		DSN:                      cmp.Or(over.DSN, c.DSN),
	}
}

// field is one field of PoolConfig as the validation, JSON and the environment
// see it. One table for the three keeps them from drifting apart.
type field struct {
	name  string // in Go, and in errors about it
	key   string // in JSON; upper-cased in the environment
	least int64  // the smallest value that has a meaning
	bound string // least in words
	at    func(*PoolConfig) any
}

// hasNone says whether "none" has a meaning.
func (f field) hasNone() bool { return f.least < 0 }

// In the order of the struct; the order in which problems are reported.
var poolFields = []field{
	{"MaxOpenConns", "max_open_conns", 0, "positive", func(c *PoolConfig) any { return &c.MaxOpenConns }},
	{"MaxIdleConns", "max_idle_conns", math.MinInt64, "", func(c *PoolConfig) any { return &c.MaxIdleConns }},
	{"MaxWaiting", "max_waiting", NoQueue, "positive, or -1 (NoQueue)", func(c *PoolConfig) any { return &c.MaxWaiting }},
	{"AcquireTimeout", "acquire_timeout", int64(NoWait), "positive, or NoWait", func(c *PoolConfig) any { return &c.AcquireTimeout }},
	{"StatementTimeout", "statement_timeout", int64(NoTimeout), "positive, or NoTimeout", func(c *PoolConfig) any { return &c.StatementTimeout }},
	{"DialTimeout", "dial_timeout", 0, "positive", func(c *PoolConfig) any { return &c.DialTimeout }},
	{"ConnMaxLifetime", "conn_max_lifetime", int64(NoTimeout), "positive, or NoTimeout", func(c *PoolConfig) any { return &c.ConnMaxLifetime }},
	{"ConnMaxIdleTime", "conn_max_idle_time", int64(NoTimeout), "positive, or NoTimeout", func(c *PoolConfig) any { return &c.ConnMaxIdleTime }},
	{"LeakAfter", "leak_after", int64(NoTimeout), "positive, or NoTimeout", func(c *PoolConfig) any { return &c.LeakAfter }},
	{"MaxHold", "max_hold", int64(NoTimeout), "positive, or NoTimeout", func(c *PoolConfig) any { return &c.MaxHold }},
	{"LeakStacks", "leak_stacks", 0, "", func(c *PoolConfig) any { return &c.LeakStacks }},
	{"IdleInTransactionTimeout", "idle_in_transaction_timeout", 0, "positive", func(c *PoolConfig) any { return &c.IdleInTransactionTimeout }},
	{"LockTimeout", "lock_timeout", 0, "positive", func(c *PoolConfig) any { return &c.LockTimeout }},
	{"ReadOnly", "read_only", 0, "", func(c *PoolConfig) any { return &c.ReadOnly }},
	{"DSN", "dsn", 0, "", func(c *PoolConfig) any { return &c.DSN }},
}

// fieldOf returns the field with that key.
func fieldOf(key string) (field, bool) {
	for _, f := range poolFields {
		if f.key == key {
			return f, true
		}
	}
	return field{}, false
}

// poolKeys lists the keys that may stand in a pool: those of its fields, and
// dsn_env, which is written instead of dsn.
func poolKeys() []string {
	keys := make([]string, 0, len(poolFields)+1)
	for _, f := range poolFields {
		keys = append(keys, f.key)
	}
	return append(keys, "dsn_env")
}

// check returns an error that names label, bound and value if the field of c is
// out of range. Zero is unset, and so never is.
func (f field) check(c *PoolConfig, label string) error {
	switch p := f.at(c).(type) {
	case *int:
		if int64(*p) < f.least {
			return fmt.Errorf("%s must be %s, got %d", label, f.bound, *p)
		}
	case *time.Duration:
		if int64(*p) < f.least {
			return fmt.Errorf("%s must be %s, got %v", label, f.bound, *p)
		}
	}
	return nil
}

// check returns an error that names the first field out of range.
func (c PoolConfig) check() error {
	for _, f := range poolFields {
		if err := f.check(&c, f.name); err != nil {
			return err
		}
	}
	return nil
}
