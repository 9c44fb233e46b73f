module github.com/sqlbulkhead/sqlbulkhead/cmd/sqlbulkhead

go 1.26.0

require github.com/sqlbulkhead/sqlbulkhead v0.0.0

replace github.com/sqlbulkhead/sqlbulkhead => ../..
