package testserver

import (
	"net/url"
	"regexp"
	"strings"
)

// mysqlAddr finds the address in a DSN of go-sql-driver/mysql: the last of its
// kind, since a password may hold anything.
var mysqlAddr = regexp.MustCompile(`^(.*@tcp\()([^)]*)(\).*)$`)

// AddrOf returns the host:port in a DSN of the two forms that this package
// hands out, and "" if there is none.
func AddrOf(dsn string) string {
	if u, ok := parseURL(dsn); ok {
		return u.Host
	}
	if m := mysqlAddr.FindStringSubmatch(dsn); m != nil {
		return m[2]
	}
	return ""
}

// WithAddr returns the DSN with its host:port replaced, so that it leads
// through a [Proxy].
func WithAddr(dsn, addr string) string {
	if u, ok := parseURL(dsn); ok {
		u.Host = addr
		return u.String()
	}
	return mysqlAddr.ReplaceAllString(dsn, "${1}"+addr+"${3}")
}

func parseURL(dsn string) (*url.URL, bool) {
	if !strings.Contains(dsn, "://") {
		return nil, false
	}
	u, err := url.Parse(dsn)
	return u, err == nil
}
