package conformance_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sqlbulkhead/sqlbulkhead/conformance"
	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
)

// What wrappers of drivers are known to lose, each lost on purpose: the suite finds it, in a scenario where it shows.
func TestSuiteFindsWhatALossyWrapperLoses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lose  func(sqldriver.Conn) sqldriver.Conn
		found string // the scenario
	}{
		{"every optional interface", func(c sqldriver.Conn) sqldriver.Conn { return struct{ sqldriver.Conn }{c} }, "isolation and read-only"},
		{"the checker", func(c sqldriver.Conn) sqldriver.Conn { return lossy{c.(fullConn)} }, "arguments, direct"},
		{"column types", func(c sqldriver.Conn) sqldriver.Conn { return typeless{lossy{c.(fullConn)}} }, "column types"},
		{"the concrete type of errors", func(c sqldriver.Conn) sqldriver.Conn { return rewording{lossy{c.(fullConn)}} }, "attempts"},
		{"ErrBadConn", func(c sqldriver.Conn) sqldriver.Conn { return hiding{lossy{c.(fullConn)}} }, "attempts"},
		{"isolation", func(c sqldriver.Conn) sqldriver.Conn { return levelling{lossy{c.(fullConn)}} }, "isolation and read-only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := conformance.Compare(t, lossyTwin(c.lose))
				for _, d := range r.Differences {
					if strings.HasPrefix(d.Behaviour, c.found+": ") {
						return
					}
				}
				t.Errorf("%d differences, none of them in %q", len(r.Differences), c.found)
			})
		})
	}
}

// A twin of itself shows no difference: what the suite finds is no noise of its own.
func TestSuiteFindsNothingBetweenPlainAndPlain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := conformance.Compare(t, lossyTwin(func(c sqldriver.Conn) sqldriver.Conn { return c }))
		for _, d := range r.Differences {
			t.Error(d)
		}
		if r.Behaviours < 500 {
			t.Errorf("%d behaviours: the suite has not run", r.Behaviours)
		}
	})
}

func lossyTwin(lose func(sqldriver.Conn) sqldriver.Conn) conformance.Twin {
	tw := fakeTwin("control", fakedb.With(fakedb.AllRows))
	tw.Partitioned = func(_ testing.TB, conns int) *sql.DB {
		server := fakedb.New(fakedb.With(fakedb.AllRows))
		server.Handle(answer)
		db := sql.OpenDB(lossyConnector{server.Connector(), lose})
		db.SetMaxOpenConns(conns)
		servers.Store(db, server)
		return db
	}
	return tw
}

type lossyConnector struct {
	sqldriver.Connector
	lose func(sqldriver.Conn) sqldriver.Conn
}

func (c lossyConnector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return c.lose(conn), nil
}

// fullConn is what the fake's connections are, but for NamedValueChecker.
type fullConn interface {
	sqldriver.Conn
	sqldriver.Pinger
	sqldriver.ExecerContext
	sqldriver.QueryerContext
	sqldriver.ConnPrepareContext
	sqldriver.ConnBeginTx
	sqldriver.SessionResetter
	sqldriver.Validator
}

// lossy has no NamedValueChecker.
type lossy struct{ fullConn }

// typeless has rows that know nothing of their columns.
type typeless struct{ lossy }

func (c typeless) QueryContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	rows, err := c.lossy.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return struct{ sqldriver.Rows }{rows}, nil
}

// rewording wraps errors.
type rewording struct{ lossy }

func (c rewording) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	res, err := c.lossy.ExecContext(ctx, query, args)
	if err != nil {
		err = fmt.Errorf("exec: %w", err)
	}
	return res, err
}

// hiding makes a common error of ErrBadConn.
type hiding struct{ lossy }

func (c hiding) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	res, err := c.lossy.ExecContext(ctx, query, args)
	if errors.Is(err, sqldriver.ErrBadConn) {
		err = errors.New(err.Error())
	}
	return res, err
}

// levelling begins every transaction alike.
type levelling struct{ lossy }

func (c levelling) BeginTx(ctx context.Context, _ sqldriver.TxOptions) (sqldriver.Tx, error) {
	return c.lossy.BeginTx(ctx, sqldriver.TxOptions{})
}
