package conformance

import "regexp"

// Acceptance is a difference that is meant, as the README tells it under "What is different".
type Acceptance struct {
	Name        string
	Behaviour   *regexp.Regexp // its whole name
	Plain       *regexp.Regexp // the outcome; nil: any
	Partitioned *regexp.Regexp // the outcome; nil: any
}

// Accepted is all of them.
var Accepted = []Acceptance{
	{
		Name:        "Raw hands out the virtual connection",
		Behaviour:   regexp.MustCompile(`^raw: \(\*sql\.Conn\)\.Raw, type$`),
		Partitioned: regexp.MustCompile(`^"\*driver\.Conn"$`),
	},
	{
		Name:        "a context that ends during the dial gives an `*AcquireError`",
		Behaviour:   regexp.MustCompile(`^cancelled while `),
		Plain:       regexp.MustCompile(`(is|=) (Canceled|DeadlineExceeded)`),
		Partitioned: regexp.MustCompile(`^error \*partition\.AcquireError < .* is (Canceled|DeadlineExceeded)$`),
	},
	{
		Name:        "a statement that failed is prepared anew",
		Behaviour:   regexp.MustCompile(`^a statement whose table changes under it: .*: later use$`),
		Plain:       regexp.MustCompile(`^error `),
		Partitioned: regexp.MustCompile(`^\[\[\]string`),
	},
	{
		Name:        "Close of the handle",
		Behaviour:   regexp.MustCompile(`^cancelled while a statement runs: close the handle$`),
		Plain:       regexp.MustCompile(`call to database Close was not expected`),
		Partitioned: regexp.MustCompile(`^nil$`),
	},
	{
		Name:      "Stmt.Close in use",
		Behaviour: regexp.MustCompile(`^a statement closed while its rows are open: (conn|tx): `),
		Plain:     regexp.MustCompile(`error `), Partitioned: withoutError,
	},
	{
		Name:      "Stmt.Close in use",
		Behaviour: regexp.MustCompile(`: Stmt\.Close( #\d+)?$`),
		Plain:     regexp.MustCompile(`"conn busy"|"busy buffer"|"pq: unexpected close response|ErrBadConn`), Partitioned: withoutError,
	},
	{
		Name:        "a query inside the open rows of a transaction",
		Behaviour:   regexp.MustCompile(`one loop in the other: .*: inner$`),
		Plain:       regexp.MustCompile(`"pq: unexpected Bind response`),
		Partitioned: regexp.MustCompile(`"pq: unexpected Parse response`),
	},
	{
		Name:        "a query inside the open rows of a transaction",
		Behaviour:   regexp.MustCompile(`one (inside|loop in) the other: a context that cannot: `),
		Plain:       regexp.MustCompile(`error .*"(busy buffer|commands out of sync|pq: unexpected )`),
		Partitioned: regexp.MustCompile(`error .*("invalid connection"|ErrBadConn|pq: unexpected )`),
	},
}

// withoutError is an outcome that has none.
var withoutError = regexp.MustCompile(`^(nil|int64\(1\)|int\(\d+\), nil, nil)$`)

func accepted(d Difference) bool {
	for _, a := range Accepted {
		if a.Behaviour.MatchString(d.Behaviour) && matches(a.Plain, d.Plain) && matches(a.Partitioned, d.Partitioned) {
			return true
		}
	}
	return false
}

func matches(re *regexp.Regexp, outcome string) bool { return re == nil || re.MatchString(outcome) }
