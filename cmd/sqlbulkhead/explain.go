package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// explain makes one line of an error about dsn, without the password. What pgx
// tells of every address that it tried is cut down to the cause.
func explain(err error, dsn string) error {
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), "partition: ")
	if head, _, ok := strings.Cut(text, "failed to connect to "); ok {
		if why := cause(err); why != nil {
			text = head + why.Error()
		}
	}
	return errors.New(mask(strings.Join(strings.Fields(text), " "), dsn))
}

// cause is what the server or the network said, or nil.
func cause(err error) error {
	var server interface {
		error
		SQLState() string
	}
	var network *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &server):
		return server
	case errors.As(err, &network):
		return network
	case errors.As(err, &name):
		return name
	}
	return nil
}

const masked = "xxxxx"

// mask hides in text what the library takes for secret in dsn, and the pieces of
// it that a driver quotes which took a part of the password for something else.
func mask(text, dsn string) string {
	for _, secret := range secrets(dsn) {
		decoded, err := url.PathUnescape(secret)
		if err != nil {
			decoded = secret
		}
		for _, s := range append([]string{secret, decoded}, delimiters.Split(decoded, -1)...) {
			if len(s) >= 3 {
				text = strings.ReplaceAll(text, s, masked)
			}
		}
	}
	return text
}

var delimiters = regexp.MustCompile(`[^A-Za-z0-9]+`)

// secrets are the parts of dsn that the library hides when it prints one.
func secrets(dsn string) []string {
	var shown struct{ DSN string }
	if json.Unmarshal([]byte(partition.PoolConfig{DSN: dsn}.String()), &shown) != nil {
		return nil
	}
	var found []string
	plain := strings.Split(shown.DSN, masked)
	rest := strings.TrimPrefix(dsn, plain[0])
	for i, next := range plain[1:] {
		end := strings.Index(rest, next)
		if i == len(plain)-2 {
			end = len(rest) - len(next)
		}
		if end < 0 {
			break
		}
		found = append(found, rest[:end])
		rest = rest[end+len(next):]
	}
	return found
}
