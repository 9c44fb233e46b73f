package driver

import (
	sqldriver "database/sql/driver"
	"net"
)

// socketFields are the fields in which drivers keep their socket, by the path of their package.
var socketFields = map[string]string{
	"github.com/go-sql-driver/mysql": "netConn",
	"github.com/lib/pq":              "c",
}

// socketOf is the socket of a connection of a driver in socketFields; of any other it is nil.
//
// A call without a context (COMMIT, ROLLBACK, closing rows) ends when the connection does. No driver promises that its
// Close may be called beside another call, and those of go-sql-driver/mysql and lib/pq may not: they write what that call
// is reading, and wait for a network that hangs. A socket may be closed by anyone at any time, but these drivers do not
// export theirs. So it is read out of the connection; a release that keeps it elsewhere has Close called again.
func socketOf(conn sqldriver.Conn) net.Conn {
	s := structOf(conn)
	field := s.FieldByName(socketFields[s.Type().PkgPath()])
	if !field.IsValid() {
		return nil
	}
	socket, _ := readable(field).Interface().(net.Conn)
	if tls, ok := socket.(interface{ NetConn() net.Conn }); ok {
		return tls.NetConn() // whose Close does not wait for a farewell to be sent
	}
	return socket
}
