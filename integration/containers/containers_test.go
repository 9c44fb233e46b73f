package containers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// patience is for what takes moments, on a busy machine.
const patience = 30 * time.Second

// rig is a server and a handle with one connection to it.
type rig struct {
	*Server
	db *sql.DB
}

// connect leaves the rig with a new connection.
func (r *rig) connect(t *testing.T) {
	t.Helper()
	db, err := r.kind.open(r.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	r.db = db
	r.exec(t, "SELECT 1")
}

func (r *rig) exec(t *testing.T, query string) {
	t.Helper()
	if _, err := r.db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// queries differ by driver. Those that count leave their own session out.
var queries = map[string]struct{ sleep, asleep, idle string }{
	"pgx": {
		sleep:  "SELECT pg_sleep(600)",
		asleep: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
		idle:   "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle'",
	},
	"mysql": {
		sleep:  "SELECT sleep(600)",
		asleep: "SELECT count(*) FROM information_schema.processlist WHERE info = 'SELECT sleep(600)'",
		idle:   "SELECT count(*) FROM information_schema.processlist WHERE command = 'Sleep'",
	},
}

// busy runs a statement of ten minutes on the rig's connection, and returns
// once the server is at it.
func (r *rig) busy(t *testing.T) (result <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	db := r.db
	go func() {
		_, err := db.Exec(queries[r.Driver()].sleep)
		done <- err
	}()
	r.awaitCount(t, queries[r.Driver()].asleep, 1)
	return done
}

func (r *rig) awaitCount(t *testing.T, query string, want int) {
	t.Helper()
	watch, err := r.kind.open(r.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	watch.SetMaxOpenConns(1)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var got int
		if err := watch.QueryRowContext(t.Context(), query).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is %d after %v, want %d", query, got, patience, want)
		}
	}
}

// dial is the first round trip of a new connection.
func (r *rig) dial(within time.Duration) error {
	db, err := r.kind.open(r.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return db.PingContext(ctx)
}

func (r *rig) mustRefuse(t *testing.T) {
	t.Helper()
	if err := r.dial(patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection was not refused: %v", err)
	}
}

func mustEnd(t *testing.T, result <-chan error) {
	t.Helper()
	select {
	case err := <-result:
		if err == nil {
			t.Error("the statement ended as if nothing had happened")
		}
	case <-time.After(patience):
		t.Errorf("the statement did not end in %v", patience)
	}
}

// The faults follow each other on one server of each kind: starting one is what
// takes the time.
func TestFaults(t *testing.T) {
	t.Parallel()
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := &rig{Server: Start(t, kind)}
			t.Run("name", r.testName)
			t.Run("pause", r.testPause)
			t.Run("stop", func(t *testing.T) { r.testEnd(t, r.Stop) })
			t.Run("kill", func(t *testing.T) { r.testEnd(t, r.Kill) })
			t.Run("disconnect", r.testDisconnect)
			t.Run("remove", r.testRemove)
		})
	}
}

func (r *rig) testName(t *testing.T) {
	want := regexp.MustCompile(`^(PostgreSQL|MySQL|MariaDB) \d+\.\d+(\.\d+)? in a container$`)
	if !want.MatchString(r.Name()) || kinds[r.Kind()] == nil {
		t.Errorf("it is a %q named %q", r.Kind(), r.Name())
	}
}

func (r *rig) testPause(t *testing.T) {
	r.connect(t)
	r.Pause(t)
	done := make(chan error, 1)
	go func() {
		_, err := r.db.Exec("SELECT 1")
		done <- err
	}()
	if err := r.dial(200 * time.Millisecond); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection does not hang: %v", err)
	}
	select {
	case err := <-done:
		t.Errorf("a statement ended on a paused server: %v", err)
	default:
	}
	r.Resume(t)
	if err := <-done; err != nil {
		t.Errorf("what was sent meanwhile was not executed: %v", err)
	}
}

func (r *rig) testEnd(t *testing.T, end func(testing.TB)) {
	r.connect(t)
	r.exec(t, "CREATE TABLE kept (n int)")
	result := r.busy(t)
	end(t)
	mustEnd(t, result)
	r.mustRefuse(t)
	r.Start(t)
	r.connect(t)
	r.exec(t, "DROP TABLE kept")
}

func (r *rig) testDisconnect(t *testing.T) {
	idle := &rig{Server: r.Server}
	idle.connect(t)
	r.connect(t)
	result := r.busy(t)
	r.Disconnect(t)
	mustEnd(t, result)
	r.mustRefuse(t)
	r.Reconnect(t)
	r.awaitCount(t, queries[r.Driver()].idle, 0)
}

func (r *rig) testRemove(t *testing.T) {
	r.Pause(t)
	id := r.id
	r.remove(t)
	err := docker(func(ctx context.Context, c *client.Client) error {
		_, err := c.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		return err
	})
	if !errdefs.IsNotFound(err) {
		t.Errorf("the paused container is still there: %v", err)
	}
}

func TestMissingImageIsAReasonThatNamesTheWayOut(t *testing.T) {
	if err := docker(sweep); err != nil {
		t.Skip(err)
	}
	k := *kinds[Postgres]
	t.Setenv(k.variable, "sqlbulkhead/absent:local")
	err := k.available()
	want := regexp.MustCompile(`sqlbulkhead/absent:local.*make images.*` + k.variable)
	if err == nil || !want.MatchString(err.Error()) {
		t.Errorf("got %v", err)
	}
}

func TestContainerIsPreferredWhereItsImageIsNamedOrHere(t *testing.T) {
	k := kinds[Postgres]
	t.Setenv(k.variable, "sqlbulkhead/absent:local")
	if err := Preferred(Postgres); err != nil {
		t.Errorf("an image is named, and has to work: %v", err)
	}
	t.Setenv(k.variable, "")
	here := docker(func(ctx context.Context, c *client.Client) error {
		_, err := c.ImageInspect(ctx, k.official)
		return err
	})
	if err := Preferred(Postgres); (err == nil) != (here == nil) {
		t.Errorf("got %v, where a look for the image gives %v", err, here)
	}
}

func TestUnknownKindIsAnError(t *testing.T) {
	t.Parallel()
	if err := Available("oracle"); fmt.Sprint(err) != `no kind of server is named "oracle"` {
		t.Errorf("got %v", err)
	}
}
