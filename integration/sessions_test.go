package integration

import (
	"database/sql"
	"fmt"
	"strings"
)

// session is one that the server lists.
type session struct {
	address          string // its client's
	name             string // what it is told by: the user on MariaDB, on PostgreSQL the application's name up to the workload
	control, running bool
}

// listSessions is what the server lists of the sessions whose name begins with prefix, by their ids. One that has only just
// connected does not yet say that it is the control lane's.
func listSessions(admin *sql.DB, tg target, prefix string) (map[string]session, error) {
	query := "SELECT pid, host(client_addr) || ':' || client_port, application_name, application_name LIKE '%%/control'," +
		" coalesce(state = 'active', false) FROM pg_stat_activity WHERE application_name LIKE '%s%%'"
	if tg.arg == "?" {
		query = "SELECT ID, HOST, USER, DB <=> 'information_schema', COMMAND <> 'Sleep'" +
			" FROM information_schema.PROCESSLIST WHERE USER LIKE '%s%%'"
	}
	rows, err := admin.Query(fmt.Sprintf(query, prefix))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	listed := make(map[string]session)
	for rows.Next() {
		var id string
		var s session
		if err := rows.Scan(&id, &s.address, &s.name, &s.control, &s.running); err != nil {
			return nil, err
		}
		s.name, _, _ = strings.Cut(s.name, "/")
		listed[id] = s
	}
	return listed, rows.Err()
}

// controls are the ids of the sessions that were the control lane's in any of the lists. What each is, is known only when
// all have been made.
func controls(lists []map[string]session) map[string]bool {
	found := make(map[string]bool)
	for _, listed := range lists {
		for id, s := range listed {
			if s.control {
				found[id] = true
			}
		}
	}
	return found
}
