package fakedb_test

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
)

func TestWaitsTakeTheirTimeAndEndWithTheContext(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit time.Duration // of the context; 0: none
		took  time.Duration
		err   error
	}{
		{"ok", 0, 0, nil},
		{"sleep 400ms", 0, 400 * time.Millisecond, nil},
		{"sleep 400ms; sleep 100ms", 0, 500 * time.Millisecond, nil},
		{"sleep 400ms", 300 * time.Millisecond, 300 * time.Millisecond, context.DeadlineExceeded},
		{"hang", 300 * time.Millisecond, 300 * time.Millisecond, context.DeadlineExceeded},
		{"deaf 400ms", 300 * time.Millisecond, 400 * time.Millisecond, nil},
		{"orphan 400ms", 0, 400 * time.Millisecond, nil},
		{"orphan 400ms", 300 * time.Millisecond, 300 * time.Millisecond, context.DeadlineExceeded},
		{"rows 3 sleep 50ms", 0, 150 * time.Millisecond, nil},
		{"rows 3 at 2 hang", 300 * time.Millisecond, 300 * time.Millisecond, context.DeadlineExceeded},
	} {
		t.Run(c.text, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				ctx, cancel := b.ctx, context.CancelFunc(func() {})
				if c.limit > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.limit)
				}
				defer cancel()
				took, err := b.exec(ctx, c.text)
				b.isError(err, c.err)
				equal(b.T, "took", took, c.took)
				time.Sleep(time.Second) // an orphan's rest
				b.blameless()
			})
		})
	}
}

func TestCommandsAnswer(t *testing.T) {
	inBubble(t, func(b *bench) {
		equal(b.T, "id", one[int](b, "id"), 1)
		equal(b.T, "command without rows", one[int](b, "ok"), 1)
		equal(b.T, "version", one[string](b, "SELECT version();"), "PostgreSQL 15.4")
		equal(b.T, "outside a transaction", one[string](b, "tx"), "none")
		equal(b.T, "last answer counts", one[int](b, "rows 1; set a=b; /* ; */ rows 2 -- ;"), 1)
		for text, want := range map[string]int64{"ok": 1, "affected 7": 7, "rows 5": 5, "multi 2x3": 6} {
			res, err := b.db.ExecContext(b.ctx, text)
			b.nilError(err)
			n, err := res.RowsAffected()
			b.nilError(err)
			equal(b.T, text, n, want)
		}
		b.blameless()
	}, fakedb.WithVersion("PostgreSQL 15.4"))
}

func TestArgsShowsWhatArrived(t *testing.T) {
	inBubble(t, func(b *bench) {
		rows, err := b.db.QueryContext(b.ctx, "args", 7, "x", uint64(1)<<63, fakedb.Removed{}, []int64{1, 2}, nil)
		b.nilError(err)
		var types []string
		for rows.Next() {
			var typ string
			b.nilError(rows.Scan(new(int), new(string), &typ, new(any)))
			types = append(types, typ)
		}
		b.nilError(rows.Err())
		equalList(b.T, "types", types, "int64", "string", "uint64", "[]int64", "<nil>")
		b.blameless()
	})
}

func TestPlaceholdersOfAPreparedStatementAreCounted(t *testing.T) {
	inBubble(t, func(b *bench) {
		st, err := b.db.PrepareContext(b.ctx, "ok ? $2")
		b.nilError(err)
		defer st.Close()
		_, err = st.ExecContext(b.ctx, 1)
		if err == nil {
			b.Error("one argument for two placeholders was accepted")
		}
		_, err = st.ExecContext(b.ctx, 1, 2)
		b.nilError(err)
	})
}

func TestPlaceholdersCanBeUncounted(t *testing.T) {
	inBubble(t, func(b *bench) {
		st, err := b.db.PrepareContext(b.ctx, "ok ? $2")
		b.nilError(err)
		defer st.Close()
		_, err = st.ExecContext(b.ctx, 1)
		b.nilError(err)
	}, fakedb.WithUncountedInput())
}

func TestConverterSeesArgumentsOfPreparedStatements(t *testing.T) {
	inBubble(t, func(b *bench) {
		st, err := b.db.PrepareContext(b.ctx, "args ?")
		b.nilError(err)
		defer st.Close()
		var typ string
		b.nilError(st.QueryRowContext(b.ctx, 7).Scan(new(int), new(string), &typ, new(any)))
		equal(b.T, "type", typ, "string")
	}, fakedb.Without(fakedb.NamedValueChecker), fakedb.With(fakedb.ColumnConverter))
}

func TestStatementsOwnCheckerComesBeforeTheConnections(t *testing.T) {
	refused := errors.New("not this one")
	inBubble(t, func(b *bench) {
		_, err := b.exec(b.ctx, "ok ?", 1)
		b.nilError(err)
		st, err := b.db.PrepareContext(b.ctx, "ok ?")
		b.nilError(err)
		defer st.Close()
		_, err = st.ExecContext(b.ctx, 1)
		b.isError(err, refused)
	}, fakedb.WithStmtChecker(func(*sqldriver.NamedValue) error { return refused }))
}

func TestRowsCanFailOnTheWay(t *testing.T) {
	inBubble(t, func(b *bench) {
		list, err := b.query("rows 3 err 2")
		equalList(b.T, "rows before the error", list, 1, 2)
		equal(b.T, "state", sqlState(err), "XX000")
		list, err = b.query("rows 3 at 3 timeout")
		equalList(b.T, "rows before the timeout", list, 1, 2, 3)
		equal(b.T, "state", sqlState(err), "57014")
		b.blameless()
	})
}

func TestMultiHasSeveralSetsIfTheDriverKnowsOfThem(t *testing.T) {
	for opt, want := range map[fakedb.Interfaces]int{0: 1, fakedb.RowsNextResultSet: 2} {
		t.Run(opt.String(), func(t *testing.T) {
			inBubble(t, func(b *bench) {
				rows, err := b.db.QueryContext(b.ctx, "multi 2x3")
				b.nilError(err)
				defer rows.Close()
				sets := 0
				for more := true; more; more = rows.NextResultSet() {
					list, err := ints(rows)
					b.nilError(err)
					equalList(b.T, "rows", list, 1, 2, 3)
					sets++
				}
				equal(b.T, "sets", sets, want)
			}, fakedb.With(opt))
		})
	}
}

func sqlState(err error) string {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		return state.SQLState()
	}
	return ""
}

func TestErrorsHaveTheShapeOfTheDriversOwn(t *testing.T) {
	inBubble(t, func(b *bench) {
		for text, state := range map[string]string{
			"error": "XX000", "error 23505": "23505", "timeout": "57014", "timeout de": "57014", "cancel": "57014",
			"no such thing": "42601", "rows": "42601", "rows x": "42601", "rows 3 at 2": "42601", "rows 3 err": "42601",
			"rows 3 at 2 nonsense": "42601", "sleep 1": "42601", "ok; select 1": "42601", "set x": "42601",
			"multi 2": "42601", "timeout xx": "42601", "affected 1 2": "42601", "show nothing": "42704",
			"select version()": "42883",
		} {
			_, err := b.exec(b.ctx, text)
			equal(b.T, text, sqlState(err), state)
		}
		for text, number := range map[string]uint16{"timeout mysql": 3024, "timeout mariadb": 1969} {
			var mysql *fakedb.MySQLError
			if _, err := b.exec(b.ctx, text); !errors.As(err, &mysql) || mysql.Number != number {
				b.Errorf("%s: got %v", text, err)
			}
		}
		equal(b.T, "connections dialled", b.s.Stats().Dialed, 1)
		b.blameless()
	})
}

func TestSettingsLastAsLongAsTheirSession(t *testing.T) {
	inBubble(t, func(b *bench) {
		_, err := b.exec(b.ctx, "set a=1; SET SESSION Statement_Timeout TO '200ms', c = 3")
		b.nilError(err)
		equal(b.T, "shown", one[string](b, "SHOW statement_timeout"), "200ms")
		equal(b.T, "settings", len(b.s.Settings(1)), 3)
		b.s.Set(1, "A", "2")
		equal(b.T, "set from outside", one[string](b, "show a"), "2")
		_, err = b.exec(b.ctx, "reset statement_timeout")
		b.nilError(err)
		equal(b.T, "the server's own", one[string](b, "show statement_timeout"), "0")
		_, err = b.exec(b.ctx, "discard all")
		b.nilError(err)
		equal(b.T, "settings", len(b.s.Settings(1)), 1)
		equal(b.T, "no such session", len(b.s.Settings(2)), 0)
		b.blameless()
	}, fakedb.WithSetting("statement_timeout", "0"))
}

func TestTimeoutSettingEndsStatementsAndRows(t *testing.T) {
	inBubble(t, func(b *bench) {
		_, err := b.exec(b.ctx, "set statement_timeout=200")
		b.nilError(err)
		for _, text := range []string{"sleep 1s", "hang", "deaf 1s", "rows 9 sleep 30ms"} {
			took, err := b.exec(b.ctx, text)
			equal(b.T, text, sqlState(err), "57014")
			equal(b.T, text, took, 200*time.Millisecond)
		}
		list, err := b.query("rows 9 sleep 30ms")
		equal(b.T, "rows", len(list), 6)
		equal(b.T, "error between rows", sqlState(err), "57014")
		_, err = b.exec(b.ctx, "set statement_timeout=0")
		b.nilError(err)
		_, err = b.exec(b.ctx, "sleep 1s")
		b.nilError(err)
		equal(b.T, "connections dialled", b.s.Stats().Dialed, 1)
		b.blameless()
	}, fakedb.WithTimeoutSetting("statement_timeout", time.Millisecond, ""))
}

func TestHandlersAnswerBeforeTheLanguage(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.s.Handle(func(_ context.Context, c fakedb.Call) (*fakedb.Answer, error) {
			if c.Text != "SELECT set_config($1, $2, false)" {
				return nil, nil
			}
			value := c.Args[1].Value.(string)
			b.s.Set(c.Conn, c.Args[0].Value.(string), value)
			return &fakedb.Answer{Columns: []string{"set_config"}, Rows: [][]sqldriver.Value{{value}}}, nil
		})
		text := "SELECT set_config($1, $2, false)"
		equal(b.T, "direct", one[string](b, text, "statement_timeout", "200"), "200")
		st, err := b.db.PrepareContext(b.ctx, text)
		b.nilError(err)
		defer st.Close()
		b.nilError(st.QueryRowContext(b.ctx, "statement_timeout", "300").Scan(new(string)))
		equal(b.T, "setting", one[string](b, "show statement_timeout"), "300")
		b.blameless()
	})
}

func TestSkipMakesDatabaseSQLPrepare(t *testing.T) {
	inBubble(t, func(b *bench) {
		list, err := b.query("skip; rows 2")
		b.nilError(err)
		equalList(b.T, "rows", list, 1, 2)
		calls := b.s.Calls(fakedb.Query, fakedb.Prepare)
		equal(b.T, "calls", len(calls), 3)
		b.isError(calls[0].Err, sqldriver.ErrSkip)
		equal(b.T, "prepared", b.s.Stats().Prepared, 1)
		b.blameless()
	})
}

func TestPanicLeavesTheConnectionUsable(t *testing.T) {
	inBubble(t, func(b *bench) {
		func() {
			defer func() { equal(b.T, "panic", recover() != nil, true) }()
			_, _ = b.exec(b.ctx, "panic")
		}()
		equal(b.T, "running", b.s.Stats().Running, 0)
		equal(b.T, "id", one[int](b, "id"), 1)
		b.blameless()
	})
}

func TestBytesBelongToTheDriverUntilTheNextCall(t *testing.T) {
	t.Parallel()
	c := dial(t, fakedb.New())
	rows, err := c.(sqldriver.QueryerContext).QueryContext(t.Context(), "types", nil)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]sqldriver.Value, 7)
	if err := rows.Next(row); err != nil {
		t.Fatal(err)
	}
	kept := row[3].([]byte)
	equal(t, "before", string(kept), "bytes")
	_ = rows.Next(make([]sqldriver.Value, 7))
	equal(t, "after", string(kept), "#####")
}
