package fakedb

import (
	"math/bits"
	"strings"
)

// Interfaces is a set of optional driver interfaces, for [With] and [Without].
type Interfaces uint32

// The optional interfaces. Unless told otherwise a server's connections have those of the first two groups, its
// prepared statements those of the fourth, its rows none.
const (
	// Of the driver and its connector.
	DriverContext   Interfaces = 1 << iota
	ConnectorCloser            // io.Closer

	// Of a connection.
	Pinger
	ExecerContext
	QueryerContext
	ConnPrepareContext
	ConnBeginTx
	SessionResetter
	Validator
	NamedValueChecker

	// Of a connection, from before there were contexts.
	Execer
	Queryer

	// Of a prepared statement.
	StmtExecContext
	StmtQueryContext

	// Of a prepared statement, rarely seen.
	StmtNamedValueChecker
	ColumnConverter

	// Of rows.
	RowsNextResultSet
	RowsColumnTypeScanType
	RowsColumnTypeDatabaseTypeName
	RowsColumnTypeLength
	RowsColumnTypeNullable
	RowsColumnTypePrecisionScale
	RowsColumnScanner // Go 1.27
)

// Whole groups: Without(AllConn, AllStmt) is a driver as of Go 1.0, With(AllRows) knows all about its columns.
const (
	AllConn = usualConn | Execer | Queryer
	AllStmt = StmtExecContext | StmtQueryContext | StmtNamedValueChecker | ColumnConverter
	AllRows = RowsNextResultSet | RowsColumnTypeScanType | RowsColumnTypeDatabaseTypeName |
		RowsColumnTypeLength | RowsColumnTypeNullable | RowsColumnTypePrecisionScale
)

const (
	usualConn = Pinger | ExecerContext | QueryerContext | ConnPrepareContext | ConnBeginTx |
		SessionResetter | Validator | NamedValueChecker
	usualStmt = StmtExecContext | StmtQueryContext
	usual     = DriverContext | ConnectorCloser | usualConn | usualStmt
)

var interfaceNames = [...]string{
	"DriverContext", "ConnectorCloser",
	"Pinger", "ExecerContext", "QueryerContext", "ConnPrepareContext", "ConnBeginTx", "SessionResetter", "Validator",
	"NamedValueChecker", "Execer", "Queryer",
	"StmtExecContext", "StmtQueryContext", "StmtNamedValueChecker", "ColumnConverter",
	"RowsNextResultSet", "RowsColumnTypeScanType", "RowsColumnTypeDatabaseTypeName", "RowsColumnTypeLength",
	"RowsColumnTypeNullable", "RowsColumnTypePrecisionScale", "RowsColumnScanner",
}

// Has reports whether all of want are in the set.
func (i Interfaces) Has(want Interfaces) bool { return i&want == want }

// String lists the names, "none" for the empty set; it serves as the name of a subtest.
func (i Interfaces) String() string {
	if i == 0 {
		return "none"
	}
	var names []string
	for ; i != 0; i &= i - 1 {
		names = append(names, interfaceNames[bits.TrailingZeros32(uint32(i))])
	}
	return strings.Join(names, "+")
}
