// Package sqlbulkhead is empty: it is the root of a module. The library is package partition; the tag is package
// workload.
package sqlbulkhead
