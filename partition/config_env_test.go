package partition

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestConfigFromEnvReadsEveryField(t *testing.T) {
	for variable, value := range map[string]string{
		"SBT_DEFAULT": "reporting", "SBT_REQUIRE_TAG": "true", "SBT_BUDGET": " 40\n", "SBT_POOLER": "transaction",
		"SBT_OLTP_MAX_OPEN_CONNS": "12", "SBT_OLTP_MAX_IDLE_CONNS": "-1", "SBT_OLTP_MAX_WAITING": "-1",
		"SBT_OLTP_ACQUIRE_TIMEOUT": "none", "SBT_OLTP_STATEMENT_TIMEOUT": "1m30s", "SBT_OLTP_DIAL_TIMEOUT": "2s",
		"SBT_OLTP_CONN_MAX_LIFETIME": "none", "SBT_OLTP_CONN_MAX_IDLE_TIME": "90s", "SBT_OLTP_IDLE_IN_TRANSACTION_TIMEOUT": "10s",
		"SBT_OLTP_LOCK_TIMEOUT": "250ms", "SBT_OLTP_READ_ONLY": "1", "SBT_OLTP_DSN": "host=a",
		"SBT_REPORTING_DSN_ENV": "OTHER_REPLICA", "OTHER_REPLICA": "host=replica",
		"SBT_NIGHTLY_EXPORT_MAX_OPEN_CONNS": "2",
	} {
		t.Setenv(variable, value)
	}
	want := Config{Default: workload.Reporting, RequireTag: true, Budget: 40, Pooler: "transaction", Pools: map[workload.Name]PoolConfig{
		workload.OLTP: {MaxOpenConns: 12, MaxIdleConns: -1, MaxWaiting: NoQueue, AcquireTimeout: NoWait, StatementTimeout: 90 * time.Second,
			DialTimeout: 2 * time.Second, ConnMaxLifetime: NoTimeout, ConnMaxIdleTime: 90 * time.Second,
			IdleInTransactionTimeout: 10 * time.Second, LockTimeout: 250 * time.Millisecond, ReadOnly: true, DSN: "host=a"},
		workload.Reporting: {DSN: "host=replica"},
		"nightly_export":   {MaxOpenConns: 2},
	}}
	for _, prefix := range []string{"SBT", "SBT_"} {
		got, err := ConfigFromEnv(prefix)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("prefix %q:\ngot  %+v\nwant %+v", prefix, got, want)
		}
	}
}

func TestUnrelatedAndEmptyVariablesAreIgnored(t *testing.T) {
	t.Parallel()
	got, err := configFromEnviron("DB", []string{
		"DB_HOST=h", "DB_PORT=5432", "DB_DSN=postgres://a:b@c/d", "DB_MAX_OPEN_CONNS=7", "DB_NAME=x", "DB_=", "DB=y", "=C:=C:\\", "junk",
		"DB_OLTP_MAX_OPEN_CONNS=", "DB_REPORTING_READ_ONLY= ", "DB_OLTP_NO_SUCH=", "DB_DEFAULT=",
		"DBX_OLTP_MAX_OPEN_CONNS=x", "OLTP_MAX_OPEN_CONNS=x", "DB_OLTP=x", "DB_OLTPX_FOO=x", "db_oltp_max_open_conns=x",
	})
	if err != nil || !reflect.DeepEqual(got, Config{}) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestBadVariableIsRefusedByName(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"DB_REPORTING_MAX_CONNS=3":                         `partition: DB_REPORTING_MAX_CONNS names no field of pool "reporting", known are MAX_OPEN_CONNS, `,
		"DB_OLTP_HOST=h":                                   `DB_OLTP_HOST names no field of pool "oltp"`,
		"DB_BATCH_=h":                                      `DB_BATCH_ names no field of pool "batch"`,
		"DB_ADMIN_MAX_OPEN_CONN=3":                         `DB_ADMIN_MAX_OPEN_CONN names no field of pool "admin"`,
		"DB_OLTP_MAX_OPEN_CONNS=three":                     `partition: DB_OLTP_MAX_OPEN_CONNS must be a whole number, got "three"`,
		"DB_OLTP_MAX_OPEN_CONNS=-3":                        `DB_OLTP_MAX_OPEN_CONNS must be positive, got -3`,
		"DB_OLTP_MAX_WAITING=-2":                           `DB_OLTP_MAX_WAITING must be positive, or -1 (NoQueue), got -2`,
		"DB_OLTP_ACQUIRE_TIMEOUT=50":                       `DB_OLTP_ACQUIRE_TIMEOUT must be a duration such as "50ms", or "none", got "50"`,
		"DB_OLTP_DIAL_TIMEOUT=none":                        `DB_OLTP_DIAL_TIMEOUT must be a duration such as "50ms", got "none"`,
		"DB_OLTP_READ_ONLY=yes":                            `DB_OLTP_READ_ONLY must be true or false, got "yes"`,
		"DB_OLTP_DSN_ENV=NOT_THERE":                        `DB_OLTP_DSN_ENV: environment variable "NOT_THERE" is not set`,
		"DB_REQUIRE_TAG=2":                                 `DB_REQUIRE_TAG must be true or false, got "2"`,
		"DB_BUDGET=-4":                                     `DB_BUDGET must be positive, got -4`,
		"DB_BUDGET=many":                                   `DB_BUDGET must be a whole number, got "many"`,
		"DB_DEFAULT=u:Wallflower@h/d":                      `DB_DEFAULT: a workload's name is expected, got what looks like a DSN`,
		"DB_OLTP_DSN_ENV=u:Wallflower@h/d":                 `DB_OLTP_DSN_ENV: environment variable "u:xxxxx@h/d" is not set`,
		"DB_POOLER=session":                                `DB_POOLER must be "transaction", got "session"`,
		"DB_POOLER=u:Wallflower@h/d":                       `DB_POOLER must be "transaction", got `,
		"DB_DEFAULT=OLTP":                                  `DB_DEFAULT: workload: name must be`,
		"DB__MAX_OPEN_CONNS_DSN=x":                         `DB__MAX_OPEN_CONNS_DSN: workload: name must be`,
		"DB_OLTP_LOCK_TIMEOUT=postgres://u:Wallflower@h/d": `DB_OLTP_LOCK_TIMEOUT must be a duration`,
	} {
		got, err := configFromEnviron("DB", []string{entry})
		if err == nil || !strings.HasPrefix(err.Error(), "partition: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "flower") {
			t.Errorf("%s\ngot  %v\nwant %s", entry, err, want)
		}
		if !reflect.DeepEqual(got, Config{}) {
			t.Errorf("%s: half a configuration came back: %+v", entry, got)
		}
	}
}

func TestNoErrorOfAVariableHoldsAMisplacedPassword(t *testing.T) {
	t.Parallel()
	for _, dsn := range misplaced {
		for _, variable := range []string{"DB_OLTP_DSN_ENV", "DB_OLTP_LOCK_TIMEOUT", "DB_OLTP_MAX_WAITING", "DB_OLTP_READ_ONLY", "DB_DEFAULT", "DB_MODE", "DB_POOLER", "DB_BUDGET"} {
			if _, err := configFromEnviron("DB", []string{variable + "=" + dsn}); err == nil || strings.Contains(err.Error(), "flower") {
				t.Errorf("%s=%s: %v", variable, dsn, err)
			}
		}
	}
}

func TestDSNAndDSNEnvExcludeEachOtherInTheEnvironment(t *testing.T) {
	t.Parallel()
	_, err := configFromEnviron("DB", []string{"DB_OLTP_DSN_ENV=X", "DB_OLTP_DSN=u:Wallflower@h/d", "X=u:Wallflower@h/d"})
	if err == nil || err.Error() != "partition: DB_OLTP_DSN and DB_OLTP_DSN_ENV exclude each other" {
		t.Fatalf("got %v", err)
	}
}

func TestFirstBadVariableIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	for range 50 {
		_, err := configFromEnviron("DB", []string{"DB_OLTP_X=1", "DB_BUDGET=x", "DB_BATCH_Y=1"})
		if err == nil || !strings.Contains(err.Error(), "DB_BATCH_Y") {
			t.Fatalf("got %v", err)
		}
	}
}

func TestEmptyPrefixIsRefused(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "_"} {
		if _, err := ConfigFromEnv(prefix); err == nil {
			t.Errorf("%q accepted", prefix)
		}
	}
}
