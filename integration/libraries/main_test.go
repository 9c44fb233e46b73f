// Package libraries runs the libraries that people use over database/sql on a partitioned handle and on a plain one.
package libraries

import (
	"fmt"
	"os"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"

	// The drivers that the libraries run on.
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
)

func TestMain(m *testing.M) {
	code := testserver.Main(m)
	fmt.Println(summary())
	os.Exit(code)
}
