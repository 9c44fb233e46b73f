package fakedb

import (
	sqldriver "database/sql/driver"
	"math"
	"reflect"
	"time"
)

var _ interface {
	sqldriver.Rows
	sqldriver.RowsNextResultSet
	sqldriver.RowsColumnTypeScanType
	sqldriver.RowsColumnTypeDatabaseTypeName
	sqldriver.RowsColumnTypeLength
	sqldriver.RowsColumnTypeNullable
	sqldriver.RowsColumnTypePrecisionScale
} = (*rows)(nil)

// columnType is what is known of a column whose first value is of one Go type. It invents what the value cannot tell.
type columnType struct {
	name             string
	scan             reflect.Type
	length           int64
	hasLength        bool
	nullable         bool
	knowsNullable    bool
	precision, scale int64
	isDecimal        bool
}

func typeOf(v sqldriver.Value) columnType {
	switch v.(type) {
	case int64:
		return columnType{name: "INT8", scan: reflect.TypeFor[int64](), knowsNullable: true}
	case float64:
		return columnType{name: "NUMERIC", scan: reflect.TypeFor[float64](), precision: 8, scale: 2, isDecimal: true}
	case string:
		return columnType{name: "VARCHAR", scan: reflect.TypeFor[string](), length: 10, hasLength: true}
	case []byte:
		return columnType{name: "BYTEA", scan: reflect.TypeFor[[]byte](), length: math.MaxInt64, hasLength: true}
	case bool:
		return columnType{name: "BOOL", scan: reflect.TypeFor[bool]()}
	case time.Time:
		return columnType{name: "TIMESTAMPTZ", scan: reflect.TypeFor[time.Time]()}
	default:
		return columnType{name: "UNKNOWN", scan: reflect.TypeFor[any](), nullable: true, knowsNullable: true}
	}
}

func (r *rows) ColumnTypeScanType(i int) reflect.Type { return r.cursor.columnType(i).scan }

func (r *rows) ColumnTypeDatabaseTypeName(i int) string { return r.cursor.columnType(i).name }

func (r *rows) ColumnTypeLength(i int) (length int64, ok bool) {
	t := r.cursor.columnType(i)
	return t.length, t.hasLength
}

func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) {
	t := r.cursor.columnType(i)
	return t.nullable, t.knowsNullable
}

func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	t := r.cursor.columnType(i)
	return t.precision, t.scale, t.isDecimal
}
