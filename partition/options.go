package partition

import (
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Option changes what Open builds. Options apply in order, field by field: of two that set the same field the later one
// holds. Their values are checked by Open, which reports the first that is wrong. A nil Option is none.
type Option func(*options)

type options struct {
	pools      map[workload.Name]PoolConfig
	connectors map[workload.Name]sqldriver.Connector
	def        workload.Name
	fallback   workload.Name
	requireTag bool
	budget     int
	mode       Mode
	name       string
	dialect    stmttimeout.Dialect
	logger     *slog.Logger
	observers  observers
	pooler     string // of a Config
	opts       []Option
	instead    *Config // takes the place of every WithConfig
	laid       bool    // instead is
	err        error   // the first of an option
}

func newOptions(opts []Option) *options { return optionsWith(opts, nil) }

// optionsWith lays options on one another. A Config that is given takes the place of the first WithConfig, or else comes
// last; all that WithConfig gave is left out.
func optionsWith(opts []Option, instead *Config) *options {
	o := &options{
		opts: slices.Clone(opts), instead: instead,
		pools:      make(map[workload.Name]PoolConfig),
		connectors: make(map[workload.Name]sqldriver.Connector),
		def:        workload.OLTP,
		logger:     slog.Default(),
	}
	for name := range standardPools {
		o.pools[name] = PoolConfig{}
	}
	for _, opt := range opts {
		if opt != nil {
			opt(o)
		}
	}
	o.layInstead()
	return o
}

// WithPool sets fields of a pool; a name that is not there yet becomes a new pool. Fields that c leaves at zero keep
// what an earlier option set, else their default.
func WithPool(name workload.Name, c PoolConfig) Option {
	return func(o *options) { o.pools[name] = o.pools[name].merge(c) }
}

// WithoutPool takes a pool out, a standard one too. What is tagged with its name is then an unknown workload. A name that
// is no pool is refused.
func WithoutPool(name workload.Name) Option {
	return func(o *options) {
		if _, ok := o.pools[name]; !ok && o.err == nil {
			o.err = fmt.Errorf("partition: WithoutPool: %q is not a pool", string(name))
		}
		delete(o.pools, name)
		delete(o.connectors, name)
	}
}

// WithPoolConnector gives a pool its own server, a read replica for example, by connector. The pool's size does not
// count against the budget. If c is an io.Closer it is closed with the registry.
func WithPoolConnector(name workload.Name, c sqldriver.Connector) Option {
	return func(o *options) {
		o.pools[name] = o.pools[name].merge(PoolConfig{})
		o.connectors[name] = c
	}
}

// WithConfig applies a whole configuration, as [LoadConfig] or [ConfigFromEnv] returned it. [Registry.Apply] puts another in
// its place later.
func WithConfig(c Config) Option {
	return func(o *options) {
		if o.instead == nil {
			o.lay(c)
		} else {
			o.layInstead()
		}
	}
}

func (o *options) lay(c Config) {
	for name, pool := range c.Pools {
		WithPool(name, pool)(o)
	}
	if c.Default != "" {
		o.def = c.Default
	}
	o.requireTag = o.requireTag || c.RequireTag
	if c.Budget != 0 {
		o.budget = c.Budget
	}
	if c.Mode != "" {
		o.setMode(c.Mode, "Mode")
	}
	if err := checkPooler(c.Pooler, "Pooler"); err != nil && o.err == nil {
		o.err = fmt.Errorf("partition: %w", err)
	}
	if c.Pooler != "" {
		o.dialect, o.pooler = stmttimeout.Postgres(stmttimeout.TransactionPooling()), c.Pooler
	}
}

// layInstead does nothing the second time.
func (o *options) layInstead() {
	if o.instead != nil && !o.laid {
		o.laid = true
		o.lay(*o.instead)
	}
}

// WithBudget sets how many connections all pools of the shared server may have together: what SetMaxOpenConns said
// before. Pools without an explicit MaxOpenConns share what the others leave, in the ratio of the defaults and at least
// one each. Explicit sizes that exceed it are refused, as is a budget of more than a million. 0: no budget.
func WithBudget(total int) Option { return func(o *options) { o.budget = total } }

// WithDefault names the pool of untagged contexts. Unset: [workload.OLTP].
func WithDefault(name workload.Name) Option { return func(o *options) { o.def = name } }

// WithRequiredTag refuses untagged contexts with ErrUntagged.
func WithRequiredTag() Option { return func(o *options) { o.requireTag = true } }

// WithFallback names the pool of contexts whose tag no pool has, as it happens to a context that passes through
// services or databases with other pools. Unset: they get ErrUnknownWorkload.
func WithFallback(name workload.Name) Option { return func(o *options) { o.fallback = name } }

// WithName names the registry in logs and metrics, for a service with several databases. On PostgreSQL it also stands
// in application_name where the connection has none of its own.
func WithName(s string) Option { return func(o *options) { o.name = s } }

// WithDialect says what kind of server all pools are on, instead of finding out. Nil: find out. It also says that a pooler
// of transactions stands before it: see [stmttimeout.TransactionPooling], without which a dial through one fails with
// [stmttimeout.ErrPooled].
func WithDialect(d stmttimeout.Dialect) Option { return func(o *options) { o.dialect = d } }

// WithLogger sets the log for what nobody can be given as an error, and for what an operator wants to see without metrics:
// rejections, saturation, connections that cannot be opened, statements that did not end when they were told to, leaks and
// connections taken back. What comes in bursts is logged at once the first time (leaks and connections taken back: ten
// times), then counted, and the count logged every 10 seconds until for so long there was none. Unset or nil:
// [slog.Default]. Neither a password nor an argument of a statement is ever logged. The handler may be slow, or stuck: it
// runs on a goroutine of its own. Close waits a second for it.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) {
		if l != nil {
			o.logger = l
		}
	}
}

// WithObserver adds an observer. It may be given several times.
func WithObserver(v Observer) Option {
	return func(o *options) {
		if err := o.observers.add(v); err != nil && o.err == nil {
			o.err = err
		}
	}
}

// resolve checks everything that does not need a server and returns the effective pools.
func (o *options) resolve(main *server) (map[workload.Name]PoolConfig, error) {
	if o.err != nil {
		return nil, o.err
	}
	for name, c := range o.connectors {
		if c != nil && sameConnector(c, main.connector) {
			delete(o.connectors, name) // its own server is the shared one
		}
	}
	own := func(name workload.Name) bool { return o.connectors[name] != nil }
	pools, err := resolve(o.pools, o.budget, own)
	if err != nil {
		return nil, err
	}
	if _, ok := pools[o.def]; !ok && !o.requireTag {
		return nil, fmt.Errorf("partition: default %q is not a pool", string(o.def))
	}
	if _, ok := pools[o.fallback]; !ok && o.fallback != "" {
		return nil, fmt.Errorf("partition: fallback %q is not a pool", string(o.fallback))
	}
	if len(pools) == 0 {
		return nil, errors.New("partition: there is no pool: every one is left out")
	}
	for name, c := range o.connectors {
		if err := checkConnector(c); err != nil {
			return nil, fmt.Errorf("partition: pool %q: WithPoolConnector: %w", string(name), err)
		}
		if pools[name].DSN != "" {
			return nil, fmt.Errorf("partition: pool %q: has both a DSN and a connector of its own", string(name))
		}
	}
	return pools, nil
}
