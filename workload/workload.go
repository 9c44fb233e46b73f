package workload

import "fmt"

// Name is the name of a workload: 1 to 40 of a-z 0-9 . _ / -, starting with a
// letter or a digit. It appears in errors, logs, metrics and, on servers that
// have one, in the session's application name; hence the narrow alphabet and
// the bound.
//
// The zero Name is not valid.
type Name string

// The standard workloads. Any other valid Name may be used beside them.
const (
	// OLTP is work that a person waits for: short, frequent, latency first.
	OLTP Name = "oltp"
	// Reporting is reports, exports and dashboards: few and long.
	Reporting Name = "reporting"
	// Batch is jobs: imports, backfills, queues, nightly runs.
	Batch Name = "batch"
	// Admin is migrations and maintenance.
	Admin Name = "admin"
)

// maxLen leaves room for the user's own part in PostgreSQL's application_name,
// which the server cuts off at 63 bytes.
const maxLen = 40

// Validate returns an error that tells the rule if n is not a valid name, and
// nil otherwise.
func (n Name) Validate() error {
	valid := len(n) >= 1 && len(n) <= maxLen && isAlnum(n[0])
	for i := 0; valid && i < len(n); i++ {
		valid = isAlnum(n[i]) || isPunct(n[i])
	}
	if valid {
		return nil
	}
	// The precision keeps a tag that came from outside from flooding a log.
	return fmt.Errorf("workload: name must be 1 to %d of a-z 0-9 . _ / -, starting with a letter or digit, got %.60q",
		maxLen, string(n))
}

func isAlnum(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' }

func isPunct(b byte) bool { return b == '.' || b == '_' || b == '/' || b == '-' }
