package stmttimeout

import (
	"context"
	"strings"
)

var (
	_ Ender = mysql{}
	_ Ender = mariadb{}
)

// mysqlServer tells servers apart. (MySQL has a server_uuid, MariaDB has not.)
const mysqlServer = "CONCAT_WS(':', @@hostname, @@port, @@server_id)"

// mysqlSession is the column that reads a session's identity. Its number alone would not do, since a restarted server
// begins to count anew; the client's address and port, which the server keeps with it, are nobody else's.
const mysqlSession = "(SELECT CONCAT_WS('" + sessionSep + "', ID, HOST, " + mysqlServer + ")" +
	" FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID())"

// Control makes information_schema the session's database: a session has no name that others see, but they see that.
func (mysql) Control(ctx context.Context, s Session) error { return s.Exec(ctx, mysqlControl) }

// Control makes information_schema the session's database: a session has no name that others see, but they see that.
func (mariadb) Control(ctx context.Context, s Session) error { return s.Exec(ctx, mysqlControl) }

const mysqlControl = "USE information_schema"

// End is KILL QUERY, or KILL CONNECTION with force. A user may do that to the sessions of its own.
func (mysql) End(ctx context.Context, s Session, victim string, force bool) (bool, error) {
	return mysqlEnd(ctx, s, victim, force)
}

// End is KILL QUERY, or KILL CONNECTION with force. A user may do that to the sessions of its own.
func (mariadb) End(ctx context.Context, s Session, victim string, force bool) (bool, error) {
	return mysqlEnd(ctx, s, victim, force)
}

// mysqlQuote writes an address as a literal. It has no backslash.
func mysqlQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

const noSuchThread = 1094

func mysqlEnd(ctx context.Context, s Session, victim string, force bool) (bool, error) {
	id, ok := parseSession(victim)
	if !ok {
		return false, ErrOtherServer
	}
	query := "SELECT " + mysqlServer + ", (SELECT COMMAND FROM information_schema.PROCESSLIST WHERE ID = " + id.number +
		" AND HOST = " + mysqlQuote(id.since) + ")"
	return id.end(ctx, s, query, func(ctx context.Context) error {
		kill := "KILL QUERY "
		if force {
			kill = "KILL CONNECTION "
		}
		err := s.Exec(ctx, kill+id.number)
		if anyNumber(err, func(n int64) bool { return n == noSuchThread }) {
			return nil
		}
		return err
	})
}
