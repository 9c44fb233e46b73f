package stmttimeout_test

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
)

// A handler gives its statements less time than the pool does. The helper that it calls asks for more, and does not get it.
func ExampleWith() {
	ctx := stmttimeout.With(context.Background(), 200*time.Millisecond)
	ctx = stmttimeout.With(ctx, 10*time.Second)

	limit, ok := stmttimeout.From(ctx)
	fmt.Println(limit, ok)
	// Output: 200ms true
}

// A statement that ran too long is told from a caller that has left.
func ExampleError() {
	err := fmt.Errorf("monthly report: %w", &stmttimeout.Error{
		Limit:    time.Minute,
		Elapsed:  60_013 * time.Millisecond,
		ByServer: true,
		Err:      errors.New("ERROR: canceling statement due to statement timeout (SQLSTATE 57014)"),
	})

	fmt.Println(err)
	fmt.Println("too slow:", errors.Is(err, stmttimeout.ErrExceeded))
	fmt.Println("caller left:", errors.Is(err, context.Canceled))
	if exceeded := (*stmttimeout.Error)(nil); errors.As(err, &exceeded) {
		fmt.Println("limit:", exceeded.Limit)
	}
	// Output:
	// monthly report: stmttimeout: limit of 1m0s exceeded after 1m0.013s, ended by the server: ERROR: canceling statement due to statement timeout (SQLSTATE 57014)
	// too slow: true
	// caller left: false
	// limit: 1m0s
}

// printing is a connection that prints the beginning of what it is sent and answers as a MariaDB server would whose session
// has no limit.
type printing struct{}

func (printing) QueryRow(_ context.Context, query string) ([]sqldriver.Value, error) {
	fmt.Printf("%.56s...\n", query)
	return []sqldriver.Value{0.2, "42|10.0.0.7:50112|db1:3306:1"}, nil
}

func (printing) Exec(context.Context, string) error { return nil }

// A dialect limits a session and reads the limit back, in one statement where the server can.
func ExampleDialect() {
	applied, err := stmttimeout.MariaDB().Setup(context.Background(), printing{}, stmttimeout.Settings{
		StatementTimeout: 200 * time.Millisecond,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(applied.Enforcement, applied.StatementTimeout)
	fmt.Println(applied.Restore)
	// Output:
	// BEGIN NOT ATOMIC SET @@SESSION.max_statement_time = IF(@...
	// session 200ms
	// [SET @@SESSION.max_statement_time = 0.200000]
}

// What the text of a statement tells: a borrower that lifts the limit is found out, and the session restored behind it.
func ExampleDialect_inspect() {
	for _, query := range []string{"SELECT 1", "SET max_execution_time = 0", "UPDATE jobs SET done = true"} {
		traits := stmttimeout.MySQL().Inspect(query)
		fmt.Printf("%-27s touches settings: %-5v  limited by the server: %v\n", query,
			traits.Has(stmttimeout.TouchesSettings), traits.Has(stmttimeout.ServerEnforced))
	}
	// Output:
	// SELECT 1                    touches settings: false  limited by the server: true
	// SET max_execution_time = 0  touches settings: true   limited by the server: false
	// UPDATE jobs SET done = true touches settings: false  limited by the server: false
}

// The server says which dialect it speaks, where the driver cannot know.
func ExampleFromVersion() {
	for _, version := range []string{"PostgreSQL 17.2 on x86_64-pc-linux-gnu", "10.11.19-MariaDB", "8.4.0", "24.3.1.2672"} {
		if d, ok := stmttimeout.FromVersion(version); ok {
			fmt.Println(d.Name())
		} else {
			fmt.Println("unknown")
		}
	}
	// Output:
	// postgres
	// mariadb
	// mysql
	// unknown
}
