package integration

import (
	"context"
	"database/sql"
	"fmt"
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

// session is one that the server lists.
type session struct{ control, running bool }

// list is what the server lists of the rig, by the session's id. One that has only just connected does not yet say that it
// is the control lane's.
func (w *watched) list() map[string]session {
	query := "SELECT pid, application_name LIKE '%/control', coalesce(state = 'active', false) FROM pg_stat_activity WHERE application_name LIKE '" + w.name + "%'"
	if w.target.arg == "?" {
		query = "SELECT ID, DB <=> 'information_schema', COMMAND <> 'Sleep' FROM information_schema.PROCESSLIST WHERE USER = '" + w.name + "'"
	}
	listed := make(map[string]session)
	rows, err := w.admin.Query(query)
	if err != nil {
		w.Errorf("listing sessions: %v", err)
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var s session
		if err := rows.Scan(&id, &s.control, &s.running); err != nil {
			w.Errorf("listing sessions: %v", err)
		}
		listed[id] = s
	}
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
// lists. Only at the end is it known which of the listed sessions were the control lane's.
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
		for _, listed := range lists {
			for id, s := range listed {
				if s.control {
					except[id] = true
				}
			}
		}
		for _, listed := range lists {
			all, running := count(listed, except)
			connections, statements = max(connections, all), max(statements, running)
		}
		return connections, statements
	}
}
