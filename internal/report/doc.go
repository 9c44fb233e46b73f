// Package report is the page on which a run can be looked at: what became of
// logins, in one shared pool and in partitions, as one HTML file that needs
// nothing else, and the same as JSON.
package report
