package integration

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/internal/testserver"
)

// cheapRole is a superuser of the test's server whose password is hashed a thousand times and not 4096 (lib/pq takes no
// less). Under the race detector a login costs a tenth of a second of computing else, and these tests log in thousands of
// times.
const cheapRole, cheapPassword, iterations = "cheap", "cheap", 1000

// cheap is the role's DSN, or the server's own if it refuses to make one.
func cheap(tb testing.TB, dsn string) string {
	tb.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		tb.Fatal("cannot parse the server's URL")
	}
	defer db.Close()
	if _, err := db.Exec("CREATE ROLE " + cheapRole + " LOGIN SUPERUSER PASSWORD '" + verifier(cheapPassword) + "'"); err != nil {
		return dsn
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	u.User = url.UserPassword(cheapRole, cheapPassword)
	return u.String()
}

var cheapPostgres = struct {
	once sync.Once
	dsn  string
}{}

func postgresDSN(tb testing.TB) string {
	tb.Helper()
	dsn := testserver.Postgres(tb)
	cheapPostgres.once.Do(func() { cheapPostgres.dsn = cheap(tb, dsn) })
	return cheapPostgres.dsn
}

// verifier is what PostgreSQL stores of a password (RFC 5803), with fewer iterations than it would make itself.
func verifier(password string) string {
	salt := []byte("not a secret")
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		panic(err)
	}
	sign := func(text string) []byte {
		mac := hmac.New(sha256.New, salted)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(sign("Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, text(salt), text(stored[:]), text(sign("Server Key")))
}
