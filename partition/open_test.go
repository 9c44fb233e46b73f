package partition_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	sqlmock "github.com/DATA-DOG/go-sqlmock"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestOpenRefusesBadOptionsNamingFieldValueAndBound(t *testing.T) {
	t.Parallel()
	pool := func(name workload.Name, c partition.PoolConfig) partition.Option { return partition.WithPool(name, c) }
	for want, opts := range map[string][]partition.Option{
		`pool "reporting": MaxOpenConns must be positive, got -2`: {pool(workload.Reporting, partition.PoolConfig{MaxOpenConns: -2})},
		`pool "etl": MaxOpenConns is required`:                    {pool("etl", partition.PoolConfig{})},
		`"Big Reports"`:                                           {pool("Big Reports", partition.PoolConfig{MaxOpenConns: 1})},
		`default "etl" is not a pool`:                             {partition.WithDefault("etl")},
		`default "oltp" is not a pool`:                            {partition.WithoutPool(workload.OLTP)},
		`fallback "etl" is not a pool`:                            {partition.WithFallback("etl")},
		`implements none`:                                         {partition.WithObserver(struct{}{})},
		`WithoutPool: "etl" is not a pool`:                        {partition.WithoutPool("etl")},
		`connector is nil`:                                        {partition.WithPoolConnector(workload.Batch, nil)},
		`has both a DSN and a connector`: {
			partition.WithPoolConnector(workload.Batch, fakedb.New().Connector()), pool(workload.Batch, partition.PoolConfig{DSN: "x"})},
		`30`: {partition.WithBudget(20), size(workload.OLTP, 30)},
		`3`:  {partition.WithBudget(3)},
		`budget must be at most 1000000, got 1000001`: {partition.WithBudget(1_000_001)},
		`there is no pool`: {partition.WithRequiredTag(), partition.WithoutPool(workload.OLTP), partition.WithoutPool(workload.Reporting),
			partition.WithoutPool(workload.Batch), partition.WithoutPool(workload.Admin)},
	} {
		s := fakedb.New()
		db, err := partition.OpenDB(s.Connector(), opts...)
		if err == nil {
			db.Close()
			t.Errorf("accepted what should be refused with %s", want)
			continue
		}
		if !strings.HasPrefix(err.Error(), "partition: ") || !contains(err.Error(), want) || contains(err.Error(), "\n") {
			t.Errorf("got %q, want something with %q", err, want)
		}
		if s.Stats().Dials != 0 {
			t.Errorf("%s: it dialled", want)
		}
	}
	if _, err := partition.OpenDB(nil); err == nil {
		t.Error("nil connector was accepted")
	}
	if _, err := partition.LoadConfig(nil); err == nil {
		t.Error("nil reader was accepted")
	}
	db, err := partition.OpenDB(fakedb.New().Connector(), nil, partition.WithDialect(nil))
	if err != nil {
		t.Fatalf("an option that is nil: %v", err)
	}
	db.Close()
}

func TestOpenRefusesWhatItsDriverCannotParseWithoutThePassword(t *testing.T) {
	t.Parallel()
	for driver, dsns := range map[string][]string{
		"pgx":      {"postgres://app:s3cr3t@db:notaport/x", "host=db port=70000 password=s3cr3t", "postgres://app:s3cr3t@db/x?sslmode=maybe"},
		"postgres": {"postgres://app:s3cr3t@db:notaport/x", "password=s3cr3t host"},
		"mysql":    {"app:s3cr3t@db:3306", "app:s3cr3t@tcp(db:3306", "app:s3cr3t@tcp(db)/x?timeout=soon"},
	} {
		for _, dsn := range dsns {
			db, err := partition.Open(driver, dsn)
			if err == nil {
				db.Close()
				t.Errorf("%s accepted %q", driver, dsn)
				continue
			}
			if contains(err.Error(), "s3cr3t") || !strings.HasPrefix(err.Error(), "partition: ") {
				t.Errorf("%s: %v", driver, err)
			}
			if db, err := partition.Open(driver, goodDSN[driver], partition.WithPool(workload.Reporting, partition.PoolConfig{DSN: dsn})); err == nil {
				db.Close()
				t.Errorf("%s accepted %q for a pool", driver, dsn)
			} else if contains(err.Error(), "s3cr3t") || !contains(err.Error(), "reporting") {
				t.Errorf("%s: %v", driver, err)
			}
		}
	}
}

var goodDSN = map[string]string{
	"pgx":      "postgres://app:s3cr3t@203.0.113.1/x?connect_timeout=1",
	"postgres": "postgres://app:s3cr3t@203.0.113.1/x?sslmode=disable",
	"mysql":    "app:s3cr3t@tcp(203.0.113.1)/x",
}

func TestOpenDialsNothing(t *testing.T) {
	t.Parallel()
	for driver, dsn := range goodDSN {
		db, err := partition.Open(driver, dsn)
		if err != nil {
			t.Errorf("%s: %v", driver, err)
			continue
		}
		plain, err := sql.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		if db.Driver() != plain.Driver() {
			t.Errorf("%s: Driver() is %T", driver, db.Driver())
		}
		plain.Close()
		db.Close()
	}
	if _, err := partition.Open("oracle", "x"); err == nil || !contains(err.Error(), "unknown driver") {
		t.Errorf("unregistered driver: %v", err)
	}
}

func TestConfigOfAPoolShowsNoPassword(t *testing.T) {
	t.Parallel()
	db, err := partition.Open("pgx", goodDSN["pgx"], partition.WithPool(workload.Reporting, partition.PoolConfig{DSN: goodDSN["pgx"]}))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	reg, _ := partition.RegistryOf(db)
	p, _ := reg.Pool(workload.Reporting)
	if c := p.Config(); contains(c.DSN, "s3cr3t") || !contains(c.DSN, "203.0.113.1") || c.MaxOpenConns != 3 {
		t.Errorf("%+v", c)
	}
}

// C29
func TestFailingPoolClosesTheServersOpenedBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakedb.New()
		s.On(fakedb.OpenDSN, func(_ context.Context, c fakedb.Call) error {
			if c.Text == "broken" {
				return errors.New("cannot parse")
			}
			return nil
		})
		name := s.Register("failing-pool")
		opened := func() int {
			n := 0
			for _, c := range s.Calls(fakedb.OpenDSN) {
				if c.Err == nil {
					n++
				}
			}
			return n
		}
		for range 20 { // the order in which pools are opened is not fixed
			_, err := partition.Open(name, "main",
				partition.WithPool("a", partition.PoolConfig{MaxOpenConns: 1, DSN: "one"}),
				partition.WithPool("b", partition.PoolConfig{MaxOpenConns: 1, DSN: "two"}),
				partition.WithPool("c", partition.PoolConfig{MaxOpenConns: 1, DSN: "broken"}))
			if err == nil || !contains(err.Error(), `"c"`) {
				t.Fatalf("%v", err)
			}
			if closed := s.Stats().ConnectorsClosed; closed != opened() {
				t.Fatalf("%d connectors opened, %d closed", opened(), closed)
			}
		}
		synctest.Wait()
	})
}

func TestConfigurationFromAFile(t *testing.T) {
	t.Parallel()
	config, err := partition.LoadConfig(strings.NewReader(`{
		"pools": {"reporting": {"max_open_conns": 4, "acquire_timeout": "75ms"}, "etl": {"max_open_conns": 1}},
		"default": "etl", "budget": 30}`))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, fakedb.New(), partition.WithConfig(config), partition.WithPool(workload.Reporting, partition.PoolConfig{MaxOpenConns: 5}))
		if c := r.pool(workload.Reporting).Config(); c.MaxOpenConns != 5 || c.AcquireTimeout != 75*ms || c.MaxWaiting != 3 {
			t.Errorf("%+v", c)
		}
		total := 0
		for _, p := range r.reg.Pools() {
			total += p.Config().MaxOpenConns
		}
		if total != 30 {
			t.Errorf("pools of %d connections in all, the budget is 30", total)
		}
		r.mustExec(context.Background(), "ok")
		if r.stats("etl").Acquired != 1 {
			t.Error("untagged work did not go to the default pool")
		}
	})
}

// go-sqlmock refuses the question which server it is, and gets exactly the statements that its test expects.
func TestSqlmockSeesExactlyTheStatementsOfItsTest(t *testing.T) {
	t.Parallel()
	plain, mock, err := sqlmock.NewWithDSN(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	log, opt := logged()
	db, err := partition.Open("sqlmock", t.Name(), opt)
	if err != nil {
		t.Fatal(err)
	}
	mock.ExpectBegin()
	mock.ExpectExec("UPDATE accounts").WithArgs(1).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	mock.ExpectQuery("SELECT name").WillReturnRows(sqlmock.NewRows([]string{"name"}).AddRow("ada"))
	tx, err := db.BeginTx(oltp, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE accounts SET seen = 1 WHERE id = ?", 1); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	var name string
	if err := db.QueryRowContext(oltp, "SELECT name FROM accounts").Scan(&name); err != nil || name != "ada" {
		t.Errorf("%q, %v", name, err)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
	mock.ExpectClose()
	db.Close()
	if n := strings.Count(log.String(), "by the client alone"); n != 1 {
		t.Errorf("told %d times that nobody enforces the timeout on the server", n)
	}
}

func TestSecretsAreNotInTheEnvironmentOfErrors(t *testing.T) {
	t.Setenv("APP_REPORTING_DSN", "postgres://app:s3cr3t@replica/x")
	t.Setenv("APP_REPORTING_MAX_OPEN_CONNS", "many")
	if _, err := partition.ConfigFromEnv("APP"); err == nil || contains(err.Error(), "s3cr3t") || !contains(err.Error(), "APP_REPORTING_MAX_OPEN_CONNS") {
		t.Errorf("%v", err)
	}
	os.Unsetenv("APP_REPORTING_MAX_OPEN_CONNS")
}
