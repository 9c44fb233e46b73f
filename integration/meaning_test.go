package integration

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// After USE, or with another search_path, the same text is another statement. What it means is the server's affair, and what
// plain database/sql gives.
func TestStatementMeansWhatItMeansInPlain(t *testing.T) {
	on(t, serverTargets, func(t *testing.T, tg target) {
		r := setup(t, tg, pool(workload.OLTP, partition.PoolConfig{MaxOpenConns: 1}))
		plain, err := sql.Open(tg.driver, tg.dsn(t))
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		plain.SetMaxOpenConns(1)
		want, got := meanings(t, tg, plain), meanings(t, tg, r.db)
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// meanings is what statements of two texts do for two tenants, each with a database (a schema) of its own.
func meanings(t *testing.T, tg target, db *sql.DB) (seen []string) {
	note := func(value any) { seen = append(seen, fmt.Sprint(value)) }
	table := fmt.Sprintf("t%d", tables.Add(1))
	enter, space := "SET search_path TO %s", "SCHEMA"
	if tg.driver == "mysql" {
		enter, space = "USE %s", "DATABASE"
	}
	run := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if _, err := db.ExecContext(in(workload.Admin), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	}
	tenants := []string{table + "_a", table + "_b"}
	for _, tenant := range tenants {
		name := tenant + "." + table
		run("CREATE "+space+" "+tenant, "CREATE TABLE "+name+" (v varchar(20), n int UNIQUE)", "INSERT INTO "+name+" (v) VALUES ('"+tenant[len(table):]+"')")
		defer run("DROP TABLE "+name, "DROP "+space+" "+tenant)
	}
	conn := func() (c *sql.Conn, prepareIn func(tenant int, text string) *sql.Stmt, enterInto func(tenant int)) {
		c, err := db.Conn(oltp)
		if err != nil {
			t.Fatal(err)
		}
		enterInto = func(tenant int) {
			if _, err := c.ExecContext(oltp, fmt.Sprintf(enter, tenants[tenant])); err != nil {
				t.Fatal(err)
			}
		}
		return c, func(tenant int, text string) *sql.Stmt {
			enterInto(tenant)
			stmt, err := c.PrepareContext(oltp, text)
			if err != nil {
				t.Fatal(err)
			}
			return stmt
		}, enterInto
	}
	value := func(stmt *sql.Stmt) {
		var v string
		err := stmt.QueryRowContext(oltp).Scan(&v)
		note(errors.Join(err, errors.New(v)))
	}

	text := "SELECT v FROM " + table + " WHERE n IS NULL"
	first, prepareIn, _ := conn()
	a := prepareIn(0, text)
	b := prepareIn(1, text)
	value(a)
	value(b)
	value(a)
	a.Close()
	first.Close()
	second, prepareIn, enterInto := conn() // b is open still
	b2 := prepareIn(1, text)
	value(b2)
	enterInto(0)
	b2.Close()
	second.Close()
	fresh, err := db.PrepareContext(oltp, text) // in what the last one left
	if err != nil {
		t.Fatal(err)
	}
	value(fresh)
	fresh.Close()
	b.Close()

	third, prepareIn, enterInto := conn()
	insert := prepareIn(0, "INSERT INTO "+table+" (n) VALUES ("+tg.arg+")")
	enterInto(1)
	for _, n := range []int{1, 1, 2} { // the second is refused
		_, err := insert.ExecContext(oltp, n)
		note(err != nil)
	}
	insert.Close()
	for _, tenant := range tenants {
		note(ask(t, oltp, third, "SELECT count(n) FROM "+tenant+"."+table))
	}
	third.Close()
	return seen
}
