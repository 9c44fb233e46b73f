package fakedb

import (
	sqldriver "database/sql/driver"
	"maps"
	"slices"
)

// The optional parts of a statement's shapes; see conn_shapes.go.
type (
	stmtExec  interface{ sqldriver.StmtExecContext }
	stmtQuery interface{ sqldriver.StmtQueryContext }
	checker   interface{ sqldriver.NamedValueChecker }
	converter interface {
		ColumnConverter(idx int) sqldriver.ValueConverter
	}
)

// stmtShapes has every combination.
var stmtShapes = map[Interfaces]func(*stmt) sqldriver.Stmt{
	0: func(s *stmt) sqldriver.Stmt { return struct{ sqldriver.Stmt }{s} },
	StmtExecContext: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtExec
		}{s, s}
	},
	StmtQueryContext: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtQuery
		}{s, s}
	},
	StmtExecContext | StmtQueryContext: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtExec
			stmtQuery
		}{s, s, s}
	},
	StmtNamedValueChecker: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			checker
		}{s, s}
	},
	StmtExecContext | StmtNamedValueChecker: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtExec
			checker
		}{s, s, s}
	},
	StmtQueryContext | StmtNamedValueChecker: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtQuery
			checker
		}{s, s, s}
	},
	StmtExecContext | StmtQueryContext | StmtNamedValueChecker: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtExec
			stmtQuery
			checker
		}{s, s, s, s}
	},
	ColumnConverter: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			converter
		}{s, s}
	},
	StmtExecContext | ColumnConverter: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtExec
			converter
		}{s, s, s}
	},
	StmtQueryContext | ColumnConverter: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtQuery
			converter
		}{s, s, s}
	},
	StmtExecContext | StmtQueryContext | ColumnConverter: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtExec
			stmtQuery
			converter
		}{s, s, s, s}
	},
	StmtNamedValueChecker | ColumnConverter: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			checker
			converter
		}{s, s, s}
	},
	StmtExecContext | StmtNamedValueChecker | ColumnConverter: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtExec
			checker
			converter
		}{s, s, s, s}
	},
	StmtQueryContext | StmtNamedValueChecker | ColumnConverter: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtQuery
			checker
			converter
		}{s, s, s, s}
	},
	StmtExecContext | StmtQueryContext | StmtNamedValueChecker | ColumnConverter: func(s *stmt) sqldriver.Stmt {
		return struct {
			sqldriver.Stmt
			stmtExec
			stmtQuery
			checker
			converter
		}{s, s, s, s, s}
	},
}

// StmtShapes lists the combinations of a prepared statement's interfaces that New can make:
// New(Without(AllStmt), With(shape)).
func StmtShapes() []Interfaces { return slices.Sorted(maps.Keys(stmtShapes)) }
