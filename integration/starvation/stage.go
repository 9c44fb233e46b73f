package starvation

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	// The other drivers that a Server may name.
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
)

// errBadDSN says nothing of what is in it.
var errBadDSN = errors.New("starvation: the server's DSN cannot be parsed")

const users = 1000 // rows in the table

// stage is a server with a database of our own, by which its sessions are told
// from everybody else's.
type stage struct {
	server   Server
	words    words
	admin    *sql.DB // in another database
	database string
	dsn      string // leads into it
}

// newStage makes the database, and drops it when the test is over.
func newStage(tb testing.TB, s Server) *stage {
	tb.Helper()
	w, known := wordsOf[s.Kind()]
	if !known {
		tb.Fatalf("starvation: unknown kind of server %q", s.Kind())
	}
	admin, err := sql.Open(s.Driver(), s.DSN())
	if err != nil {
		tb.Fatal(errBadDSN)
	}
	tb.Cleanup(func() { admin.Close() })
	st := &stage{server: s, words: w, admin: admin, database: fmt.Sprintf("starvation_%08x", rand.Uint32())}
	if st.dsn, err = w.in(s.DSN(), st.database); err != nil {
		tb.Fatal(err)
	}
	if err := st.build(tb); err != nil {
		tb.Fatalf("starvation: %v", err)
	}
	return st
}

func (st *stage) build(tb testing.TB) error {
	if err := st.exec("CREATE DATABASE " + st.database); err != nil {
		return err
	}
	drop := fmt.Sprintf(st.words.drop, st.database)
	tb.Cleanup(func() {
		if err := st.exec(drop); err != nil {
			tb.Errorf("the database %s is left behind: %v", st.database, err)
		}
	})
	if _, theirs := st.server.(given); theirs {
		tb.Cleanup(onInterrupt(func() { _ = st.exec(drop) })) // a private server goes away as a whole
	}
	db, err := sql.Open(st.server.Driver(), st.dsn)
	if err != nil {
		return errBadDSN
	}
	defer db.Close()
	var insert strings.Builder
	insert.WriteString("INSERT INTO users (id, name, visits) VALUES (1, 'user 1', 0)")
	for id := 2; id <= users; id++ {
		fmt.Fprintf(&insert, ",(%d,'user %[1]d',0)", id)
	}
	_, made := db.Exec("CREATE TABLE users (id integer NOT NULL PRIMARY KEY, name varchar(40) NOT NULL, visits integer NOT NULL)")
	_, filled := db.Exec(insert.String())
	return errors.Join(made, filled)
}

// detour is the same stage by the way whose network fails.
func (st *stage) detour(tb testing.TB) *stage {
	tb.Helper()
	way, ok := st.server.(detourer)
	if !ok {
		return st
	}
	through := *st
	var err error
	if through.dsn, err = st.words.in(way.Detour(), st.database); err != nil {
		tb.Fatal(err)
	}
	return &through
}

// exec runs what may be run twice: after a fault the idle connections are dead.
func (st *stage) exec(query string) (err error) {
	for range total {
		if _, err = st.admin.Exec(query); err == nil {
			return nil
		}
		var refused *mysql.MySQLError
		if errors.As(err, &refused) {
			return err
		}
	}
	return err
}

// onInterrupt does something before an interrupt ends the process, until stop
// is called.
func onInterrupt(do func()) (stop func()) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	go func() {
		if _, interrupted := <-interrupts; interrupted {
			do()
			os.Exit(130)
		}
	}()
	return func() {
		signal.Stop(interrupts)
		close(interrupts)
	}
}

// version is what the server says of itself, up to the first detail.
func (st *stage) version() string {
	var version string
	if err := st.admin.QueryRow("SELECT version()").Scan(&version); err != nil {
		return "of unknown version"
	}
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "PostgreSQL "), " ")
	version, _, _ = strings.Cut(version, "-")
	return version
}

// sessions lists those in our database.
func (st *stage) sessions(ctx context.Context) (ids map[int64]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	rows, err := st.admin.QueryContext(ctx, st.words.sessions, st.database)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ids = make(map[int64]bool)
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids[id] = true
	}
	return ids, rows.Err()
}

// kill ends a session; that it is gone already is no error.
func (st *stage) kill(id int64) error {
	err := st.exec(fmt.Sprintf(st.words.kill, id))
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == 1094 {
		return nil
	}
	return err
}

// The driver writes each dead connection that it finds to its own log.
func init() { mysql.SetLogger(&mysql.NopLogger{}) }
