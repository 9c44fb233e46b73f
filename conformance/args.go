package conformance

import (
	"database/sql"
	"fmt"
)

var argumentScenarios = []Scenario{
	{Name: "arguments, direct", Needs: sqlWords, Run: func(s *Side) {
		s.eachValue(func(cast, name string, v any) {
			s.Try("query "+cast+" "+name, func() any { return all(s.DB.QueryContext(oltp, s.cast("SELECT ", cast), v)) })
			if s.Do != "" && cast == s.Casts[0] {
				s.Try("exec "+cast+" "+name, func() any { return failed(s.DB.ExecContext(oltp, s.cast(s.Do, cast), v)) })
			}
		})
	}},
	{Name: "arguments, prepared", Needs: sqlWords, Run: func(s *Side) {
		for _, cast := range s.Casts {
			s.withStmt(s.DB, s.cast("SELECT ", cast), func(stmt *sql.Stmt) {
				for _, v := range values {
					s.Try("query "+cast+" "+v.name, func() any { return all(stmt.QueryContext(oltp, v.value)) })
				}
			})
		}
		if s.Do == "" {
			return
		}
		s.withStmt(s.DB, s.cast(s.Do, s.Casts[0]), func(stmt *sql.Stmt) {
			for _, v := range values {
				s.Try("exec "+v.name, func() any { return failed(stmt.ExecContext(oltp, v.value)) })
			}
		})
	}},
	{Name: "arguments, by connection and transaction", Needs: sqlWords, Run: func(s *Side) {
		for _, name := range []string{"nil", "int", "[]int64", "map", "uint64 past int64", "nil pointer to Valuer", "Valuer that fails"} {
			v := valueNamed(name)
			for _, cast := range s.Casts {
				s.onEach(func(r runner) {
					s.Try("query "+cast+" "+name, func() any { return all(r.QueryContext(oltp, s.cast("SELECT ", cast), v)) })
				})
			}
		}
	}},
	{Name: "number of arguments", Needs: sqlWords, Run: func(s *Side) {
		text := s.cast("SELECT ", s.Casts[0])
		for n := range 4 {
			args := make([]any, n)
			for i := range args {
				args[i] = "1"
			}
			s.onEach(func(r runner) {
				s.Note(fmt.Sprint("query with ", n), all(r.QueryContext(oltp, text, args...)))
			})
			s.onEach(func(r runner) {
				s.withStmt(r, text, func(stmt *sql.Stmt) {
					s.Note(fmt.Sprint("prepared with ", n), all(stmt.QueryContext(oltp, args...)))
				})
			})
			s.onEach(func(r runner) {
				s.Note(fmt.Sprint("exec with ", n), failed(r.ExecContext(oltp, text, args...)))
			})
		}
	}},
}

func valueNamed(name string) any {
	for _, v := range values {
		if v.name == name {
			return v.value
		}
	}
	panic("bug: no value named " + name)
}

func (s *Side) eachValue(f func(cast, name string, v any)) {
	for _, cast := range s.Casts {
		for _, v := range values {
			f(cast, v.name, v.value)
		}
	}
}

// cast is a statement over one argument that is cast to a type.
func (s *Side) cast(verb, to string) string {
	if to == "" {
		return verb + s.Arg(1)
	}
	return verb + "CAST(" + s.Arg(1) + " AS " + to + ")"
}
