package main

import (
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// pauseFunction is a function in SQL, which SQLite lacks: it waits as many
// seconds as its argument says. The driver adds it to the connections that are
// opened after this package is initialised, which is all of them.
const pauseFunction = "sqlbulkhead_pause"

func init() { sqlite.MustRegisterScalarFunction(pauseFunction, 1, pause) }

func pause(_ *sqlite.FunctionContext, args []sqldriver.Value) (sqldriver.Value, error) {
	seconds, ok := args[0].(float64)
	if !ok {
		return nil, fmt.Errorf("%s takes a number of seconds, got %T", pauseFunction, args[0])
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	return seconds, nil
}

// pauseStep is how long a report on SQLite waits at each row that it reads.
// SQLite looks for a cancellation between rows alone.
const pauseStep = 50 * time.Millisecond

// pauses divides the time of a report among rows of the table.
func pauses(d time.Duration) []any {
	rows := min(max(int(d/pauseStep), 1), users)
	return []any{d.Seconds() / float64(rows), rows}
}

// temporaryFile is a directory of the demo's own and the data source name of a
// database in it. Readers of a database in WAL mode never wait for each other.
func temporaryFile() (dir, dsn string, err error) {
	dir, err = os.MkdirTemp("", "sqlbulkhead-demo-")
	if err != nil {
		return "", "", err
	}
	path := filepath.ToSlash(filepath.Join(dir, "demo.sqlite"))
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/… on Windows
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)"}
	return dir, u.String(), nil
}

var errNotAFile = errors.New("flag --dsn must name a file of its own for sqlite: in memory and in a shared cache, connections wait for each other whatever the pool")

// isShared reports whether the connections to dsn share their cache, and one
// lock with it.
func isShared(dsn string) bool {
	dsn = strings.ToLower(dsn)
	return strings.Contains(dsn, "mode=memory") || strings.Contains(dsn, "cache=shared")
}
