package report

import (
	"fmt"
	"strconv"
	"time"
)

// Millis is a duration that is written as a number of milliseconds in JSON, and
// with three digits or so on the page.
type Millis time.Duration

// MarshalJSON writes milliseconds to the microsecond.
func (m Millis) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(time.Duration(m).Microseconds())/1000, 'f', -1, 64), nil
}

// UnmarshalJSON reads milliseconds.
func (m *Millis) UnmarshalJSON(data []byte) error {
	ms, err := strconv.ParseFloat(string(data), 64)
	*m = Millis(ms * float64(time.Millisecond))
	return err
}

// String is 1.25 ms, 43 ms or 1.00 s.
func (m Millis) String() string {
	ms := float64(m) / float64(time.Millisecond)
	switch {
	case ms < 9.995:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.2f s", ms/1000)
}
