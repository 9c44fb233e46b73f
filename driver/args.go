package driver

import (
	sqldriver "database/sql/driver"
	"fmt"
	"reflect"
)

// CheckNamedValue implements driver.NamedValueChecker. Where the driver leaves the conversion to database/sql it is
// done here, by the same rules: a Valuer that panics in there would take the connection with it.
func (c *Conn) CheckNamedValue(nv *sqldriver.NamedValue) error {
	p := c.phys
	if p == nil {
		return nil // the call that follows says it, as it is; from here it would reach the caller wrapped
	}
	if !p.canExec() && !p.canQuery() {
		return nil // database/sql will prepare a statement, and ask that
	}
	return c.convert(p.checker, nil, -1, nv)
}

// convert applies a driver's checker, then a statement's column converter, then the default, each if the one before
// is missing or passes (ErrSkip). inputs is the statement's number of placeholders. Drivers and values may panic.
func (c *Conn) convert(checker sqldriver.NamedValueChecker, columns columnConverter, inputs int, nv *sqldriver.NamedValue) error {
	done := false
	defer c.abandonOver(nv, &done)
	err := sqldriver.ErrSkip
	if checker != nil {
		err = checker.CheckNamedValue(nv)
	}
	if err == sqldriver.ErrSkip {
		err = convertByRule(columns, inputs, nv)
	}
	done = true
	return err
}

// abandonOver is abandon for the conversion of nv. A Valuer that panics does so before anything is sent, and what the caller
// holds goes on as in plain. But only Exec gives a connection back then: from Query and from statements it never returns.
func (c *Conn) abandonOver(nv *sqldriver.NamedValue, done *bool) {
	if *done {
		return
	}
	if _, ok := nv.Value.(sqldriver.Valuer); !ok || !calledBy("sql.(*DB).execDC", 64, "sql.(*DB).queryDC", "sql.(*Stmt).ExecContext", "sql.(*Stmt).QueryContext") {
		c.panicked()
	}
}

func convertByRule(columns columnConverter, inputs int, nv *sqldriver.NamedValue) error {
	if columns != nil {
		return convertColumn(columns, inputs, nv)
	}
	v, err := sqldriver.DefaultParameterConverter.ConvertValue(nv.Value)
	nv.Value = v
	return err
}

// convertColumn does what database/sql does for a driver.ColumnConverter. It is not asked for arguments past the last
// placeholder, where their number is known.
func convertColumn(columns columnConverter, inputs int, nv *sqldriver.NamedValue) error {
	column := nv.Ordinal - 1
	if inputs >= 0 && inputs <= column {
		return nil
	}
	if valuer, ok := nv.Value.(sqldriver.Valuer); ok {
		v, err := valueOf(valuer)
		if err != nil {
			return err
		}
		if !sqldriver.IsValue(v) {
			return fmt.Errorf("non-subset type %T returned from Value", v)
		}
		nv.Value = v
	}
	arg := nv.Value
	v, err := columns.ColumnConverter(column).ConvertValue(arg)
	nv.Value = v
	if err != nil {
		return err
	}
	if !sqldriver.IsValue(v) {
		return fmt.Errorf("driver ColumnConverter error converted %T to unsupported type %T", arg, v)
	}
	return nil
}

// valueOf is v.Value(), or NULL for a nil pointer to a type whose method has a value receiver.
func valueOf(v sqldriver.Valuer) (sqldriver.Value, error) {
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer && rv.IsNil() && rv.Type().Elem().Implements(reflect.TypeFor[sqldriver.Valuer]()) {
		return nil, nil
	}
	return v.Value()
}
