package main

import (
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/report"
)

// writePage writes what was played as a page, if one is wanted.
func writePage(s settings, began time.Time, results []result) error {
	if s.page == "" {
		return nil
	}
	return report.WriteFile(s.page, report.Report{
		Server: "The demo, through " + s.driver,
		Note:   fmt.Sprintf("%s on %d cores, %s", runtime.GOOS, runtime.NumCPU(), runtime.Version()),
		Began:  began,
		Days:   []report.Day{s.day(results)},
	})
}

func (s settings) day(results []result) report.Day {
	alone, shared, parts := results[0], results[1], results[2]
	d := report.Day{
		Name:    "Monday morning",
		Text:    fmt.Sprintf("%d analysts press Run, each again and again; a report takes %s.", s.analysts, short(s.hold)),
		Verdict: verdict(alone, shared, parts),
		Passed:  suffers(alone, shared) && parts.loginsFailed == 0,
	}
	for _, r := range results {
		d.Acts = append(d.Acts, report.Act{
			Arrangement: r.name,
			Summary:     report.Summarise(r.logins, nil),
			Logins:      r.logins,
			Counts: []report.Count{
				{Name: "reports done", Value: strconv.Itoa(r.reportsOK)},
				{Name: "rejected", Value: strconv.Itoa(r.reportsRejected)},
			},
		})
	}
	return d
}
