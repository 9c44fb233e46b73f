package integration

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// watched is a rig whose sessions can be told from everybody else's on the server, and a plain handle to look from.
type watched struct {
	*rig
	admin *sql.DB
	name  string
}

func watch(t *testing.T, tg target, opts ...partition.Option) *watched {
	t.Helper()
	dsn := tg.dsn(t)
	admin, err := sql.Open(tg.driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	w := &watched{admin: admin, name: fmt.Sprintf("watched%d", tables.Add(1))}
	if tg.arg == "?" {
		for _, text := range []string{"CREATE OR REPLACE USER %s@'%%'", "GRANT ALL ON *.* TO %s@'%%'"} {
			if _, err := admin.Exec(fmt.Sprintf(text, w.name)); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { admin.Exec("DROP USER " + w.name) })
		dsn = withUser(t, dsn, w.name)
	} else {
		dsn = withParam(t, dsn, "application_name", w.name)
	}
	w.rig = setupOn(t, tg, dsn, opts...)
	if err := w.reg.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// list is what the server lists of the rig.
func (w *watched) list() map[string]session {
	listed, err := listSessions(w.admin, w.target, w.name)
	if err != nil {
		w.Errorf("listing sessions: %v", err)
	}
	maps.DeleteFunc(listed, func(_ string, s session) bool { return s.name != w.name })
	return listed
}

// sessions counts those of the rig, the control lane's excepted, and how many of them run a statement.
func (w *watched) sessions() (all, running int) { return count(w.list(), nil) }

func count(listed map[string]session, except map[string]bool) (all, running int) {
	for id, s := range listed {
		if s.control || except[id] {
			continue
		}
		all++
		if s.running {
			running++
		}
	}
	return all, running
}

// gone waits until nothing of the rig runs on the server.
func (w *watched) gone(within time.Duration) {
	w.Helper()
	eventually(w, within, func() string {
		if _, running := w.sessions(); running > 0 {
			return fmt.Sprintf("%d statements still run", running)
		}
		return ""
	})
}

// watchList looks at the server's list until seen is called, which returns the most that the batch pool had in one of the
// lists.
func (w *watched) watchList() (seen func() (connections, statements int)) {
	var lists []map[string]session
	var watching sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	watching.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(5 * ms) {
			lists = append(lists, w.list())
		}
	})
	except := make(map[string]bool)
	for _, other := range []workload.Name{workload.OLTP, workload.Reporting, workload.Admin} {
		except[ask(w, in(other), w.db, w.target.session)] = true
	}
	return func() (connections, statements int) {
		stop()
		watching.Wait()
		maps.Copy(except, controls(lists))
		for _, listed := range lists {
			all, running := count(listed, except)
			connections, statements = max(connections, all), max(statements, running)
		}
		return connections, statements
	}
}
