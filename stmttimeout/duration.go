package stmttimeout

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ceilUnits returns d in units, rounded up and at most limit. For a positive d it is at least 1: rounding never arrives at
// the zero that means "no limit" to every server.
func ceilUnits(d, unit time.Duration, limit int64) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return min(n, limit)
}

// postgresUnits are the units in which PostgreSQL shows a time, and what a bare number stands for: milliseconds, in all of
// the settings read here (CockroachDB and Redshift show those bare).
var postgresUnits = map[string]time.Duration{
	"":    time.Millisecond,
	"us":  time.Microsecond,
	"ms":  time.Millisecond,
	"s":   time.Second,
	"min": time.Minute,
	"h":   time.Hour,
	"d":   24 * time.Hour,
}

// parsePostgresDuration reads a time as PostgreSQL shows it: a whole number and a unit, as in 200ms, 5s, 1min, 1h, 1d, 0.
func parsePostgresDuration(text string) (time.Duration, error) {
	digits := strings.TrimLeft(text, "0123456789")
	number, suffix := text[:len(text)-len(digits)], strings.TrimSpace(digits)
	unit, known := postgresUnits[suffix]
	if number == "" || !known {
		return 0, fmt.Errorf("%q is not a time as PostgreSQL shows it", text)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > int64(math.MaxInt64/unit) {
		return 0, fmt.Errorf("%q is out of range", text)
	}
	return time.Duration(n) * unit, nil
}

// scaled returns a number that MySQL or MariaDB answered, in units, as a duration to the microsecond, the longest
// there is where it does not fit. Drivers hand the same column out as a number or as text.
func scaled(v any, unit time.Duration) (time.Duration, error) {
	f, err := number(v)
	if err != nil {
		return 0, err
	}
	us := math.Round(f * float64(unit/time.Microsecond))
	switch {
	case !(us >= 0): // a NaN too
		return 0, fmt.Errorf("%v is not a time", f)
	case us >= float64(math.MaxInt64/time.Microsecond):
		return math.MaxInt64, nil
	}
	return time.Duration(us) * time.Microsecond, nil
}

func number(v any) (float64, error) {
	switch n := v.(type) {
	case int64:
		return float64(n), nil
	case uint64:
		return float64(n), nil
	case float64:
		return n, nil
	case float32:
		return float64(n), nil
	}
	text, ok := textOf(v)
	if !ok {
		return 0, fmt.Errorf("a %T is not a number", v)
	}
	return strconv.ParseFloat(text, 64)
}

// textOf returns a value that a driver handed out as text or as bytes. It is false for NULL.
func textOf(v any) (string, bool) {
	switch t := v.(type) {
	case string:
		return t, true
	case []byte:
		return string(t), t != nil
	}
	return "", false
}
