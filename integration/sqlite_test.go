package integration

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// C33
func TestPrivateMemoryOfSQLiteIsRefusedWhereItWouldSplit(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{":memory:", "", "file::memory:", "file:x?mode=memory"} {
		_, err := partition.Open("sqlite", dsn)
		if err == nil || !strings.Contains(err.Error(), "cache=shared") {
			t.Errorf("%q: %v, want an error that says what to write instead", dsn, err)
		}
	}
	const secret = "file::memory:?_auth_user=app&_auth_pass=s3cr3t"
	if _, err := partition.Open("sqlite", secret); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("with a password: %v", err)
	}
}

// C33
func TestWhatOnePoolOfSQLiteWritesEveryPoolReads(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"file:c33?mode=memory&cache=shared&_pragma=busy_timeout(5000)",
		filepath.Join(t.TempDir(), "c33") + "?_pragma=busy_timeout(5000)",
	} {
		r := setupOn(t, sqlite, dsn)
		_, giveBack := r.take(oltp, 1) // the shared memory lives while a connection does
		r.exec(oltp, "CREATE TABLE t (n int)")
		r.exec(oltp, "INSERT INTO t VALUES (7)")
		for _, name := range standard {
			if got := ask(t, in(name), r.db, "SELECT n FROM t"); got != "7" {
				t.Errorf("%s: pool %s reads %s", dsn, name, got)
			}
		}
		giveBack()
	}
}

// C33: one connection is one database.
func TestPrivateMemoryOfSQLiteServesOnePoolOfOne(t *testing.T) {
	t.Parallel()
	r := setupOn(t, sqlite, ":memory:", pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1}),
		partition.WithoutPool(workload.Reporting), partition.WithoutPool(workload.Batch), partition.WithoutPool(workload.Admin))
	r.exec(oltp, "CREATE TABLE t (n int)")
	r.exec(oltp, "INSERT INTO t VALUES (7)")
	if got := ask(t, oltp, r.db, "SELECT n FROM t"); got != "7" {
		t.Errorf("read %s", got)
	}
}

// P05: two uses of one text at a time are two statements, or one would take the other's rows.
func TestNestedLoopsOverOneTextSeeAllRowsOfBoth(t *testing.T) {
	t.Parallel()
	r := setup(t, sqlite)
	table := r.table("n int")
	r.exec(oltp, "INSERT INTO "+table+" VALUES (1), (2), (3), (4)")
	for _, tw := range r.twins() {
		inTx(t, oltp, tw.db, func(tx *sql.Tx) { nestedLoops(t, tw.name, tx, "SELECT n FROM "+table) })
	}
}

func nestedLoops(t *testing.T, name string, tx *sql.Tx, query string) {
	t.Helper()
	outer, err := tx.PrepareContext(oltp, query)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := tx.PrepareContext(oltp, query)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := outer.QueryContext(oltp)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	outerRows, innerRows := 0, 0
	for rows.Next() {
		outerRows++
		more, err := inner.QueryContext(oltp)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n, err := drain(more)
		if err != nil {
			t.Fatal(err)
		}
		innerRows += n
	}
	if err := rows.Err(); err != nil || outerRows != 4 || innerRows != 16 {
		t.Errorf("%s: %d rows outside and %d inside, %v; want 4 and 16", name, outerRows, innerRows, err)
	}
}

// SQLite keeps a connection that is closed with statements on it, and what that holds, until they are closed as well.
func TestWhatIsClosedLeavesNoFileOpenAndNoLock(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "left")
	r := setupOn(t, sqlite, "file:"+file+"?_pragma=busy_timeout(5000)", pool(workload.Batch, partition.PoolConfig{MaxOpenConns: 2, MaxHold: 200 * ms}))
	r.exec(oltp, "CREATE TABLE t (n int)")
	r.exec(oltp, "INSERT INTO t WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 10000) SELECT n FROM c")
	batch := in(workload.Batch)
	stmt, err := r.db.PrepareContext(batch, "SELECT n FROM t")
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	for _, q := range []func() (*sql.Rows, error){
		func() (*sql.Rows, error) { return r.db.QueryContext(batch, "SELECT n FROM t") },
		func() (*sql.Rows, error) { return stmt.QueryContext(batch) },
	} {
		rows, err := q()
		if err != nil {
			t.Fatal(err)
		}
		rows.Next()
		r.exec(oltp, "INSERT INTO t VALUES (0)") // once the reader is gone
		for rows.Next() {
		}
		if err := rows.Err(); !errors.Is(err, partition.ErrReclaimed) {
			t.Errorf("the late holder got %v", err)
		}
		rows.Close()
	}
	if err := r.db.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, 5*time.Second, func() string {
		if n := openFiles(file); n > 0 {
			return fmt.Sprintf("%d files are open", n)
		}
		return ""
	})
}

// openFiles is how often this process has a file open, 0 where the system does not tell.
func openFiles(name string) (n int) {
	list, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range list {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(to, name) {
			n++
		}
	}
	return n
}
