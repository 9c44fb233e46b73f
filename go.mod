module github.com/sqlbulkhead/sqlbulkhead

go 1.25.0
