package conformance

import "regexp"

// Acceptance is a difference that is meant, as the README tells it.
type Acceptance struct {
	Behaviour   *regexp.Regexp // the whole name
	Partitioned *regexp.Regexp // the outcome
	Reason      string
}

// Accepted is all of them.
var Accepted = []Acceptance{
	{
		regexp.MustCompile(`^raw: \(\*sql\.Conn\)\.Raw, type$`), regexp.MustCompile(`driver\.Conn`),
		"(*sql.Conn).Raw hands out the virtual connection; partition.Raw hands out the driver's",
	},
}

func accepted(d Difference) bool {
	for _, a := range Accepted {
		if a.Behaviour.MatchString(d.Behaviour) && a.Partitioned.MatchString(d.Partitioned) {
			return true
		}
	}
	return false
}
