// Package conformance proves that a handle of partition.Open cannot be told from one of sql.Open: [Exercise] runs every
// behaviour of database/sql that a driver can influence on both and compares what came out.
package conformance

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// Twin is one driver, opened in two ways.
type Twin struct {
	Name        string // of the driver and the mode that it is in, for the table
	Plain       Open
	Partitioned Open
	Words       Words
	Extra       []Scenario // what this driver alone can do
}

// Open opens a handle. Of conns connections there may be no more at a time, in each pool; 0 is the default.
type Open func(tb testing.TB, conns int) *sql.DB

// Words is what a server and its driver want to be told. A word that is empty leaves out the scenarios that need it.
type Words struct {
	Arg     func(n int) string // the n-th placeholder, from 1
	Do      string             // in front of an expression: evaluates it without a result set
	Casts   []string           // the types that arguments are cast to; "": none
	Types   []string           // expressions of as many types as there are, the columns of one row
	Columns string             // of a table: a serial id, a unique int n, a text s of 20
	Slow    string             // a query of 5 seconds or more
	Running string             // a query for the count of sessions that sleep in a text that ends in %s
	SlowSet string             // the same for Exec, where a driver needs another text
	Many    string             // a query of one int column and tens of thousands of rows
	Stalls  string             // a query of rows, and then of 5 seconds or more before the last of them
	Multi   string             // a text of three statements that return rows
	Script  string             // a text of two statements that return none: inserts 1 and 2 into n of table %s
	Session string             // a query for the number of the session
	Kill    string             // ends the session of this number (a verb for fmt), and waits for its end if it can
	Alive   string             // a query for the count of sessions of this number (a verb for fmt)
	Tx      []string           // queries for the isolation of the transaction and whether it is read-only
	Set     string             // changes a state of the session
	Show    string             // a query for that
	Spoil   []string           // makes prepared statements over table %s invalid

	// ClosingIsFatal: the process dies where a statement is closed on a connection before its rows are.
	ClosingIsFatal bool
	// RacesEnded: a statement under a context that has ended is sent, and cancelled beside that; either may win.
	RacesEnded bool
}

// Scenario records the outcomes of some behaviours, each under a name of its own.
type Scenario struct {
	Name     string
	Conns    int                // what the handle is opened with
	Needs    func(w Words) bool // nil: nothing
	Unsteady bool               // plain itself has several outcomes, because a race decides: ours has to be one of them
	Random   bool               // plain itself has outcomes by chance: what it does not repeat is not compared
	Run      func(s *Side)
}

// Side is one of the two handles, on which a scenario runs without knowing which it is.
type Side struct {
	testing.TB
	Words
	DB    *sql.DB
	Table string // a name that is free

	plain   Open // for what is done from outside
	watcher *sql.DB
	record  record
	prefix  string
	soon    time.Duration // the deadline for statements that run
	late    bool          // it was too soon
}

// Note records the outcome of a behaviour.
func (s *Side) Note(behaviour string, outcome ...any) {
	s.record.add(s.prefix+behaviour, describeAll(outcome))
}

// Try records the outcome that f returns, or its panic.
func (s *Side) Try(behaviour string, f func() any) {
	outcome := any(nil)
	defer func() {
		if v := recover(); v != nil {
			outcome = panicked{v}
		}
		s.Note(behaviour, outcome)
	}()
	outcome = f()
}

// group puts a name in front of those of the behaviours in f.
func (s *Side) group(name string, f func()) {
	before := s.prefix
	s.prefix += name + ": "
	defer func() { s.prefix = before }()
	f()
}

// unrecorded runs f for what it leaves behind.
func (s *Side) unrecorded(f func()) {
	before := s.record
	s.record = record{}
	f()
	s.record = before
}

// Raw is Conn.Raw as it is written for either side.
func (s *Side) Raw(conn *sql.Conn, f func(driverConn any) error) error { return partition.Raw(conn, f) }

// tags are those that plain does not see.
var tags = []workload.Name{workload.OLTP, workload.Reporting, workload.Batch}

func in(name workload.Name) context.Context { return workload.With(context.Background(), name) }

var oltp = in(workload.OLTP)
