package fakedb

import (
	sqldriver "database/sql/driver"
	"maps"
	"reflect"
	"slices"
)

// The optional parts of a row set's shapes; see conn_shapes.go. The driver package's own interfaces all embed Rows.
type (
	nextSet interface {
		HasNextResultSet() bool
		NextResultSet() error
	}
	scanType       interface{ ColumnTypeScanType(int) reflect.Type }
	typeName       interface{ ColumnTypeDatabaseTypeName(int) string }
	typeLength     interface{ ColumnTypeLength(int) (int64, bool) }
	nullable       interface{ ColumnTypeNullable(int) (bool, bool) }
	precisionScale interface {
		ColumnTypePrecisionScale(int) (int64, int64, bool)
	}
)

// rowsShapes has all, none, each one alone and each one missing. With Go 1.27 two more join them.
var rowsShapes = map[Interfaces]func(*rows) sqldriver.Rows{
	0: func(r *rows) sqldriver.Rows { return struct{ sqldriver.Rows }{r} },
	AllRows: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			nextSet
			scanType
			typeName
			typeLength
			nullable
			precisionScale
		}{r, r, r, r, r, r, r}
	},
	RowsNextResultSet: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			nextSet
		}{r, r}
	},
	RowsColumnTypeScanType: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			scanType
		}{r, r}
	},
	RowsColumnTypeDatabaseTypeName: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			typeName
		}{r, r}
	},
	RowsColumnTypeLength: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			typeLength
		}{r, r}
	},
	RowsColumnTypeNullable: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			nullable
		}{r, r}
	},
	RowsColumnTypePrecisionScale: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			precisionScale
		}{r, r}
	},
	AllRows &^ RowsNextResultSet: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			scanType
			typeName
			typeLength
			nullable
			precisionScale
		}{r, r, r, r, r, r}
	},
	AllRows &^ RowsColumnTypeScanType: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			nextSet
			typeName
			typeLength
			nullable
			precisionScale
		}{r, r, r, r, r, r}
	},
	AllRows &^ RowsColumnTypeDatabaseTypeName: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			nextSet
			scanType
			typeLength
			nullable
			precisionScale
		}{r, r, r, r, r, r}
	},
	AllRows &^ RowsColumnTypeLength: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			nextSet
			scanType
			typeName
			nullable
			precisionScale
		}{r, r, r, r, r, r}
	},
	AllRows &^ RowsColumnTypeNullable: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			nextSet
			scanType
			typeName
			typeLength
			precisionScale
		}{r, r, r, r, r, r}
	},
	AllRows &^ RowsColumnTypePrecisionScale: func(r *rows) sqldriver.Rows {
		return struct {
			sqldriver.Rows
			nextSet
			scanType
			typeName
			typeLength
			nullable
		}{r, r, r, r, r, r}
	},
}

// RowsShapes lists the combinations of a row set's interfaces that New can make: New(With(shape)).
func RowsShapes() []Interfaces { return slices.Sorted(maps.Keys(rowsShapes)) }
