package containers

import (
	"context"
	"database/sql"
	"net/url"
	"os"

	sqlmysql "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/mariadb"
	"github.com/testcontainers/testcontainers-go/modules/mysql"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

// The kinds of server.
const (
	Postgres = "postgres"
	MySQL    = "mysql"
	MariaDB  = "mariadb"
)

const (
	account  = "sqlbulkhead" // of PostgreSQL's superuser; the others have root
	database = "sqlbulkhead"
)

type options = []testcontainers.ContainerCustomizer

// kind is what differs from one kind of server to another.
type kind struct {
	product  string // as people write it
	variable string // names the image
	official string // the image otherwise
	driver   string
	port     string // in the container
	version  string // the query for it

	run func(ctx context.Context, image, password string, opts options) (testcontainers.Container, error)
	dsn func(addr, password string) string
	// open is sql.Open, but quiet: what a driver logs of a server that does
	// not serve yet is no news.
	open func(dsn string) (*sql.DB, error)
}

var kinds = map[string]*kind{
	Postgres: {
		product: "PostgreSQL", variable: "SQLBULKHEAD_POSTGRES_IMAGE", official: "postgres:17",
		driver: "pgx", port: "5432/tcp", version: "SHOW server_version",
		run: runPostgres, dsn: postgresDSN, open: openPostgres,
	},
	MySQL: {
		product: "MySQL", variable: "SQLBULKHEAD_MYSQL_IMAGE", official: "mysql:8.4",
		driver: "mysql", port: "3306/tcp", version: "SELECT version()",
		run: runMySQL, dsn: mysqlDSN, open: openMySQL,
	},
	MariaDB: {
		product: "MariaDB", variable: "SQLBULKHEAD_MARIADB_IMAGE", official: "mariadb:11",
		driver: "mysql", port: "3306/tcp", version: "SELECT version()",
		run: runMariaDB, dsn: mysqlDSN, open: openMySQL,
	},
}

// image returns the image's name, and whether somebody asked for it by name.
func (k *kind) image() (name string, asked bool) {
	if name := os.Getenv(k.variable); name != "" {
		return name, true
	}
	return k.official, false
}

func runPostgres(ctx context.Context, image, password string, opts options) (testcontainers.Container, error) {
	c, err := postgres.Run(ctx, image, append(opts,
		postgres.WithUsername(account), postgres.WithPassword(password), postgres.WithDatabase(database),
		testcontainers.WithCmdArgs("-c", "max_connections=200"))...)
	if c == nil {
		return nil, err
	}
	return c.Container, err
}

func runMySQL(ctx context.Context, image, password string, opts options) (testcontainers.Container, error) {
	c, err := mysql.Run(ctx, image, append(opts,
		mysql.WithUsername("root"), mysql.WithPassword(password), mysql.WithDatabase(database),
		testcontainers.WithCmdArgs(mysqlArgs...))...)
	if c == nil {
		return nil, err
	}
	return c.Container, err
}

func runMariaDB(ctx context.Context, image, password string, opts options) (testcontainers.Container, error) {
	c, err := mariadb.Run(ctx, image, append(opts,
		mariadb.WithUsername("root"), mariadb.WithPassword(password), mariadb.WithDatabase(database),
		testcontainers.WithCmdArgs(mysqlArgs...))...)
	if c == nil {
		return nil, err
	}
	return c.Container, err
}

// mysqlArgs have InnoDB write at each commit, but not to disk: what was
// committed survives Kill.
var mysqlArgs = []string{"--max-connections=300", "--innodb-flush-log-at-trx-commit=2"}

func postgresDSN(addr, password string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(account, password),
		Host:     addr,
		Path:     database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

func mysqlDSN(addr, password string) string {
	c := sqlmysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = "root", password, "tcp", addr, database
	return c.FormatDSN()
}

func openPostgres(dsn string) (*sql.DB, error) { return sql.Open("pgx", dsn) }

func openMySQL(dsn string) (*sql.DB, error) {
	c, err := sqlmysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	c.Logger = &sqlmysql.NopLogger{}
	connector, err := sqlmysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
