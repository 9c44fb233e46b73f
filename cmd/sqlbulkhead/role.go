package main

import (
	"context"
	"database/sql"
	"time"
)

const lagUnknown = "replica, how far behind is unknown"

// postgresRole says whether the server is a replica, and how far behind it is.
func postgresRole(ctx context.Context, conn *sql.Conn) string {
	var replica bool
	var caughtUp sql.NullBool
	var seconds sql.NullFloat64
	err := conn.QueryRowContext(ctx, `
		SELECT pg_is_in_recovery(), pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn(),
		       extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8`).
		Scan(&replica, &caughtUp, &seconds)
	switch {
	case err != nil:
		return "primary or replica: unknown"
	case !replica:
		return "primary"
	case caughtUp.Bool:
		// The time since the last transaction grows while nobody writes.
		return "replica, all that it received is applied"
	}
	return behind(seconds)
}

// behind is a replica's lag, which it does not know before it has applied
// something.
func behind(seconds sql.NullFloat64) string {
	if !seconds.Valid {
		return lagUnknown
	}
	return "replica, " + time.Duration(seconds.Float64*float64(time.Second)).Round(10*time.Millisecond).String() + " behind"
}

func mariadbRole(ctx context.Context, conn *sql.Conn) string {
	return replicaStatus(ctx, conn, "SHOW SLAVE STATUS")
}

func mysqlRole(ctx context.Context, conn *sql.Conn) string {
	return replicaStatus(ctx, conn, "SHOW REPLICA STATUS")
}

// replicaStatus asks for what only a privileged account may know. A server that
// replicates from nobody has no rows.
func replicaStatus(ctx context.Context, conn *sql.Conn, query string) string {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return "primary or replica: unknown (this account may not " + query + ")"
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil || !rows.Next() {
		if err != nil || rows.Err() != nil {
			return "primary or replica: unknown"
		}
		return "primary"
	}
	values := make([]any, len(names))
	var seconds sql.NullFloat64
	for i, name := range names {
		values[i] = new(any)
		if name == "Seconds_Behind_Master" || name == "Seconds_Behind_Source" {
			values[i] = &seconds
		}
	}
	if rows.Scan(values...) != nil {
		return lagUnknown
	}
	if !seconds.Valid {
		return "replica, not replicating"
	}
	return behind(seconds)
}
