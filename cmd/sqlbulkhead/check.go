package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// checkTimeout is for everything that check asks the servers.
const checkTimeout = 15 * time.Second

// checkup is what the flags of check say, and the configuration that they lead
// to.
type checkup struct {
	file, driver, dsn string
	instances         int
	config            partition.Config
}

// check asks the servers of a configuration whether they can carry it. Its error
// says how many things would break; the report says which.
func check(ctx context.Context, args []string, stdout io.Writer) error {
	c, err := parseCheck(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := c.load(); err != nil {
		return c.explain(err)
	}
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	found, err := c.examine(limited)
	if err != nil {
		return interruption(ctx, c.explain(err))
	}
	found.print(stdout, c.instances)
	switch n := len(found.breaks); {
	case ctx.Err() != nil:
		return ctx.Err()
	case n == 1:
		return errors.New("1 problem found")
	case n > 1:
		return fmt.Errorf("%d problems found", n)
	}
	return nil
}

func (c *checkup) flagSet() *flag.FlagSet {
	fs := newFlagSet("check")
	fs.StringVar(&c.file, "config", "", "`file` with the pools, as partition.LoadConfig reads it. Without one the\ndefaults are checked")
	fs.StringVar(&c.driver, "driver", "", "`name`: "+driverNames())
	fs.StringVar(&c.dsn, "dsn", "", "data source `name` in the syntax of the driver")
	fs.Var(whole{&c.instances, 1, 100000}, "instances", "`number` of instances of the service at the most, such as the autoscaler's\nmaximum")
	return fs
}

var checkHelp = help{`Usage: sqlbulkhead check --driver NAME --dsn NAME [flags]

Opens each pool of a configuration once, with one connection, and reports what
its server says: whether there are connections for all instances, and whether
the statement timeouts are in force. A configuration in observe mode is checked
as it will be when it is enforced. Nothing is changed on the server.

The exit status is 1 if something would break: more connections than the server
allows, a statement timeout that is not enforced as asked, a server that does
not answer.

Flags:
`, []string{
	"check --driver pgx --dsn '" + postgresFamily.example + "'",
	"check --driver mysql --dsn '" + mysqlFamily.example + "' \\\n      --config pools.json --instances 4",
}}

func parseCheck(args []string, stdout io.Writer) (*checkup, error) {
	c := &checkup{instances: 1}
	if err := parse(c.flagSet(), args, checkHelp, stdout); err != nil {
		return nil, err
	}
	if c.driver == "" {
		return nil, usageError{fmt.Errorf("flag --driver is required: %s", driverNames())}
	}
	family, err := familyOf(c.driver)
	if err != nil {
		return nil, err
	}
	if c.dsn == "" {
		family.example = cmp.Or(family.example, "file:/var/lib/service/db.sqlite")
		return nil, family.wantsDSN(c.driver)
	}
	return c, nil
}

// load reads the configuration.
func (c *checkup) load() error {
	if c.file == "" {
		return nil
	}
	f, err := os.Open(c.file)
	if err != nil {
		return err
	}
	defer f.Close()
	if c.config, err = partition.LoadConfig(f); err != nil {
		return fmt.Errorf("%s: %w", c.file, errors.New(explain(err, "").Error()))
	}
	return nil
}

// open opens the handle as the service would, but in Enforce mode: in Observe mode no session is changed, so that there would
// be nothing to read back.
func (c *checkup) open(opts ...partition.Option) (*sql.DB, *partition.Registry, error) {
	opts = append(opts, partition.WithConfig(c.config), partition.WithMode(partition.Enforce))
	db, err := partition.Open(c.driver, c.dsn, opts...)
	if err != nil {
		return nil, nil, err
	}
	reg, ok := partition.RegistryOf(db)
	if !ok {
		panic("bug: an open handle without a registry")
	}
	return db, reg, nil
}

// explain makes one line of an error, without the password of any of the pools.
func (c *checkup) explain(err error) error {
	err = explain(err, c.dsn)
	for _, pool := range c.config.Pools {
		if pool.DSN != "" {
			err = explain(err, pool.DSN)
		}
	}
	return err
}
