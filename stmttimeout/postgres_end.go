package stmttimeout

import "context"

var _ Ender = postgres{}

// postgresSession is the column that reads a session's identity. Process ids are used again, so its beginning belongs to
// it; the server's beginning tells servers apart.
const postgresSession = "(SELECT pid || '" + sessionSep + "' || " + postgresSince + " || '" + sessionSep + "' || " + postgresServer +
	" FROM pg_stat_activity WHERE pid = pg_backend_pid())"

const (
	postgresServer = "CAST(extract(epoch FROM pg_postmaster_start_time()) AS text)"
	postgresSince  = "CAST(extract(epoch FROM backend_start) AS text)"
)

// Control gives the session an application_name that ends with /control.
func (p postgres) Control(ctx context.Context, s Session) error {
	_, err := p.Setup(ctx, s, Settings{Workload: "control", StatementTimeout: controlTimeout})
	return err
}

// End is pg_cancel_backend, or pg_terminate_backend with force. A role may do that to the sessions of its own.
func (postgres) End(ctx context.Context, s Session, victim string, force bool) (bool, error) {
	id, ok := parseSession(victim)
	if !ok {
		return false, ErrOtherServer
	}
	from := " FROM pg_stat_activity WHERE pid = " + id.number + " AND " + postgresSince + " = " + quoteLiteral(id.since)
	query := "SELECT " + postgresServer + ", (SELECT coalesce(state, 'hidden')" + from + ")"
	return id.end(ctx, s, query, func(ctx context.Context) error {
		order := "SELECT pg_cancel_backend(pid)"
		if force {
			order = "SELECT pg_terminate_backend(pid)"
		}
		_, err := s.QueryRow(ctx, order+from)
		return err
	})
}
