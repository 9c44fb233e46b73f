package conformance_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/conformance"
	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// fake is for what the suite asks of SQL: the handler below answers it.
var fake = conformance.Words{
	Arg:     func(int) string { return "?" },
	Do:      "SELECT ",
	Casts:   []string{"text", ""},
	Types:   []string{"types"},
	Slow:    "sleep 900ms",
	Many:    "rows 100000",
	Multi:   "multi 3x2",
	Tx:      []string{"tx"},
	Set:     "set kept = 7",
	Show:    "show kept",
	Session: "id",
}

var (
	constant = regexp.MustCompile(`^SELECT '?(\w+)'?( AS \w+)?(, '?(\w+)'? AS \w+)?$`)
	union    = regexp.MustCompile(`^SELECT 1 UNION ALL SELECT 2( UNION ALL SELECT 3)?$`)
	echo     = regexp.MustCompile(`^SELECT (CAST\(\? AS \w+\)|\?)$`)
)

// answer makes the fake understand the few words of SQL that the suite has for every server.
func answer(_ context.Context, call fakedb.Call) (*fakedb.Answer, error) {
	if m := constant.FindStringSubmatch(call.Text); m != nil {
		a := &fakedb.Answer{Columns: []string{"a"}, Rows: [][]sqldriver.Value{{valueOf(m[1])}}}
		if m[4] != "" {
			a.Columns, a.Rows[0] = append(a.Columns, "b"), append(a.Rows[0], valueOf(m[4]))
		}
		return a, nil
	}
	switch {
	case union.MatchString(call.Text):
		return &fakedb.Answer{Columns: []string{"n"}, Rows: [][]sqldriver.Value{{int64(1)}, {int64(2)}}}, nil
	case call.Text == "SELECT 1 WHERE 1 = 0":
		return &fakedb.Answer{Columns: []string{"n"}}, nil
	case echo.MatchString(call.Text):
		a := &fakedb.Answer{Columns: []string{"name", "type", "value"}}
		for _, arg := range call.Args {
			a.Rows = append(a.Rows, []sqldriver.Value{arg.Name, fmt.Sprintf("%T", arg.Value), fmt.Sprintf("%.60v", arg.Value)})
		}
		return a, nil
	}
	return nil, nil
}

func valueOf(word string) sqldriver.Value {
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return n
	}
	return word
}

// servers is the fake behind each handle.
var servers sync.Map // *sql.DB: *fakedb.Server

func serverOf(s *conformance.Side) *fakedb.Server {
	server, _ := servers.Load(s.DB)
	return server.(*fakedb.Server)
}

// fakeTwin is a fake with these options, plain and partitioned.
func fakeTwin(name string, opts ...fakedb.Option) conformance.Twin {
	open := func(conns int, open func(*fakedb.Server) (*sql.DB, error)) *sql.DB {
		server := fakedb.New(opts...)
		server.Handle(answer)
		db, err := open(server)
		if err != nil {
			panic(err)
		}
		servers.Store(db, server)
		return db
	}
	return conformance.Twin{
		Name: name,
		Plain: func(tb testing.TB, conns int) *sql.DB {
			return open(conns, func(s *fakedb.Server) (*sql.DB, error) {
				db := sql.OpenDB(s.Connector())
				db.SetMaxOpenConns(conns)
				return db, nil
			})
		},
		Partitioned: func(tb testing.TB, conns int) *sql.DB {
			return open(conns, func(s *fakedb.Server) (*sql.DB, error) {
				return partition.OpenDB(s.Connector(), quiet, patient(conns))
			})
		},
		Words: fake,
		Extra: fakeScenarios,
	}
}

func TestFakeDriverWithEachInterfaceOfAConnectionSwitchedOff(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	for _, shape := range fakedb.ConnShapes() {
		inShape(t, "fake, interfaces of connections", shape.String(), fakedb.Without(fakedb.AllConn), fakedb.With(shape))
	}
}

func TestFakeDriverWithEachInterfaceOfAStatementSwitchedOff(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	for _, shape := range fakedb.StmtShapes() {
		inShape(t, "fake, interfaces of statements", shape.String(), fakedb.Without(fakedb.AllStmt), fakedb.With(shape))
		inShape(t, "fake, interfaces of statements, no direct calls", shape.String(),
			fakedb.Without(fakedb.AllStmt, fakedb.ExecerContext, fakedb.QueryerContext), fakedb.With(shape))
	}
}

func TestFakeDriverWithEachInterfaceOfRowsSwitchedOff(t *testing.T) {
	skipUnderRace(t)
	t.Parallel()
	for _, shape := range fakedb.RowsShapes() {
		inShape(t, "fake, interfaces of rows", shape.String(), fakedb.With(shape))
	}
}

func TestFakeDriverThatBreaksItsConnectionWhereItIsCancelled(t *testing.T) {
	t.Parallel()
	inShape(t, "fake, cancelling breaks the connection", "all", fakedb.WithCancelBreaks())
	inShape(t, "fake, inputs not counted", "all", fakedb.WithUncountedInput())
}

func inShape(t *testing.T, name, shape string, opts ...fakedb.Option) {
	t.Helper()
	t.Run(shape, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { exercise(t, fakeTwin(name, opts...)) })
	})
}

// fakeScenarios are those in which the fake tells what was asked of the driver.
var fakeScenarios = []conformance.Scenario{
	{Name: "attempts", Run: func(s *conformance.Side) {
		for _, text := range []string{"badconn", "badconn wrapped", "error", "skip", "skip; id", "ok", "timeout", "cancel"} {
			for _, use := range uses {
				server := serverOf(s)
				server.ClearLog()
				s.Note(use.name+" "+text, use.run(s.DB, text))
				s.Note(use.name+" "+text+", attempts", attemptsOf(server, text))
			}
		}
	}},
	{Name: "attempts on one connection", Run: func(s *conformance.Side) {
		for _, text := range []string{"badconn", "badconn wrapped", "error", "skip", "ok"} {
			for _, use := range uses {
				server := serverOf(s)
				c, err := s.DB.Conn(oltp)
				if err != nil {
					s.Note("conn", err)
					continue
				}
				server.ClearLog()
				s.Note(use.name+" "+text, use.run(c, text))
				s.Note(use.name+" "+text+", attempts", attemptsOf(server, text))
				s.Note(use.name+" "+text+", again", use.run(c, "ok"))
				s.Note(use.name+" "+text+", close", c.Close())
			}
		}
	}},
	{Name: "faults of the driver", Run: func(s *conformance.Side) {
		for _, kind := range []fakedb.Kind{fakedb.Dial, fakedb.Ping, fakedb.Exec, fakedb.Query, fakedb.Prepare, fakedb.Begin,
			fakedb.Commit, fakedb.Rollback, fakedb.Reset, fakedb.Valid, fakedb.Next, fakedb.CloseRows, fakedb.CloseStmt} {
			for _, err := range []error{sqldriver.ErrBadConn, errFault} {
				s.Note(fmt.Sprintf("%s: %v", kind, err), faulty(s, kind, err)...)
			}
		}
	}},
	{Name: "cancelled while a connection is made", Run: func(s *conformance.Side) {
		server := serverOf(s)
		server.On(fakedb.Dial, fakedb.Delay(time.Second))
		ctx, cancel := context.WithTimeout(oltp, 20*time.Millisecond)
		_, err := s.DB.ExecContext(ctx, "ok")
		s.Note("by a deadline", err)
		cancel()
		ctx, cancel = context.WithCancel(oltp)
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err = s.DB.ExecContext(ctx, "ok")
		s.Note("by its caller", err)
		server.On(fakedb.Dial, nil)
		s.Note("and then", uses[0].run(s.DB, "ok"))
	}},
	{Name: "panics of the driver", Run: func(s *conformance.Side) {
		for _, use := range uses {
			s.Try(use.name, func() any { return use.run(s.DB, "panic") })
			s.Note(use.name+", and then", use.run(s.DB, "ok"))
		}
	}},
	{Name: "arguments as the driver gets them", Run: func(s *conformance.Side) {
		for _, args := range [][]any{
			{}, {1}, {"a", nil}, {sql.Named("x", 1), 2}, {uint64(1) << 63}, {[]int64{1}}, {map[string]string{"a": "b"}},
			{fakedb.Removed{}}, {1, fakedb.Removed{}, 3}, {struct{}{}}, {(*workload.Name)(nil)},
		} {
			s.Note(fmt.Sprint("query ", args), asked(s.DB, "args", args))
			s.Note(fmt.Sprint("query of a placeholder ", args), asked(s.DB, "args ?", args))
		}
	}},
	{Name: "rows that fail", Run: func(s *conformance.Side) {
		for _, text := range []string{"rows 3 err 0", "rows 3 err 2", "rows 3 at 1 badconn", "rows 3 at 1 timeout", "multi 2x1", "rows 3 at 3 error"} {
			s.Note(text, asked(s.DB, text, nil))
			stmt, err := s.DB.PrepareContext(oltp, text)
			if err != nil {
				s.Note(text+", prepare", err)
				continue
			}
			s.Note(text+", prepared", read(stmt.QueryContext(oltp)))
			s.Note(text+", prepared, again", read(stmt.QueryContext(oltp)))
			s.Note(text+", close", stmt.Close())
		}
	}},
}

var (
	oltp     = workload.With(context.Background(), workload.OLTP)
	errFault = fmt.Errorf("a fault")
)

type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
	PingContext(ctx context.Context) error
}

// uses are the ways to run a text.
var uses = []struct {
	name string
	run  func(r runner, text string) any
}{
	{"exec", func(r runner, text string) any { _, err := r.ExecContext(oltp, text); return err }},
	{"query", func(r runner, text string) any { return read(r.QueryContext(oltp, text)) }},
	{"prepared exec", func(r runner, text string) any {
		return prepared(r, text, func(stmt *sql.Stmt) any { _, err := stmt.ExecContext(oltp); return err })
	}},
	{"prepared query", func(r runner, text string) any {
		return prepared(r, text, func(stmt *sql.Stmt) any { return read(stmt.QueryContext(oltp)) })
	}},
	{"exec in a transaction", func(r runner, text string) any {
		tx, err := r.BeginTx(oltp, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		_, err = tx.ExecContext(oltp, text)
		return []any{err, tx.Commit()}
	}},
	{"ping", func(r runner, _ string) any { return r.PingContext(oltp) }},
}

func prepared(r runner, text string, use func(stmt *sql.Stmt) any) any {
	stmt, err := r.PrepareContext(oltp, text)
	if err != nil {
		return err
	}
	return []any{use(stmt), stmt.Close()}
}

func read(rows *sql.Rows, err error) any {
	if err != nil {
		return err
	}
	defer rows.Close()
	var out []any
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			columns, _ := rows.Columns()
			values, dest := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				dest[i] = &values[i]
			}
			out = append(out, rows.Scan(dest...), values)
		}
	}
	return append(out, rows.Err(), rows.Close())
}

func asked(db *sql.DB, text string, args []any) any {
	return read(db.QueryContext(oltp, text, args...))
}

// attemptsOf counts the calls that ran a text.
func attemptsOf(server *fakedb.Server, text string) string {
	counts := make(map[fakedb.Kind]int)
	for _, call := range server.Calls(fakedb.Exec, fakedb.Query) {
		if call.Text == text {
			counts[call.Kind]++
		}
	}
	return fmt.Sprint(counts)
}

// faulty has one kind of call fail once, and then for ever.
func faulty(s *conformance.Side, kind fakedb.Kind, err error) (outcomes []any) {
	server := serverOf(s)
	for _, times := range []int{1, 100} {
		left := times
		server.On(kind, func(context.Context, fakedb.Call) error {
			if left--; left < 0 {
				return nil
			}
			return err
		})
		for _, use := range uses {
			outcomes = append(outcomes, use.name, use.run(s.DB, "id; rows 2"))
		}
		server.On(kind, nil)
	}
	return outcomes
}
