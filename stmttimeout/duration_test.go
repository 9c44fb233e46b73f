package stmttimeout

import (
	sqldriver "database/sql/driver"
	"fmt"
	"math"
	"testing"
	"time"
)

func TestPostgresTimesAreRead(t *testing.T) {
	t.Parallel()
	tests := map[string]time.Duration{
		"0":            0,
		"200ms":        200 * time.Millisecond,
		"5s":           5 * time.Second,
		"1min":         time.Minute,
		"90min":        90 * time.Minute,
		"1h":           time.Hour,
		"1d":           24 * time.Hour,
		"500us":        500 * time.Microsecond,
		"30000":        30 * time.Second, // bare milliseconds
		"30 s":         30 * time.Second,
		"2147483647ms": 2147483647 * time.Millisecond,
	}
	for text, want := range tests {
		if got, err := parsePostgresDuration(text); err != nil || got != want {
			t.Errorf("%q = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestOtherTextsAreNotPostgresTimes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "ms", "-1", "-1ms", "+1ms", "1.5s", "1m", "1S", "200MS", "on", "1 h 5 min", "00:00:05", "٣s",
		"9223372036854775807ms", "99999999999999999999s", "106752d",
	} {
		if d, err := parsePostgresDuration(text); err == nil {
			t.Errorf("%q was read as %v", text, d)
		}
	}
}

func FuzzParsePostgresDuration(f *testing.F) {
	for _, seed := range []string{"0", "200ms", "5s", "1min", "1h", "1d", "30000", "-1", "1e3s", "9223372036854775807d", " 5s"} {
		f.Add(seed, uint32(0))
	}
	f.Fuzz(func(t *testing.T, text string, n uint32) {
		if d, err := parsePostgresDuration(text); err == nil && d < 0 || err != nil && d != 0 {
			t.Errorf("%q = %v, %v", text, d, err)
		}
		for unit, scale := range postgresUnits {
			if uint64(n) > uint64(math.MaxInt64/scale) {
				continue
			}
			shown := fmt.Sprintf("%d%s", n, unit)
			if d, err := parsePostgresDuration(shown); err != nil || d != time.Duration(n)*scale {
				t.Errorf("%s = %v, %v", shown, d, err)
			}
		}
	})
}

func TestUnitsAreRoundedUpAndNeverToZero(t *testing.T) {
	t.Parallel()
	tests := []struct {
		d, unit time.Duration
		limit   int64
		want    int64
	}{
		{1, time.Millisecond, 1000, 1},
		{999_999, time.Millisecond, 1000, 1},
		{time.Millisecond, time.Millisecond, 1000, 1},
		{time.Millisecond + 1, time.Millisecond, 1000, 2},
		{1500 * time.Millisecond, time.Second, 1000, 2},
		{time.Hour, time.Second, 60, 60},
		{math.MaxInt64, time.Millisecond, maxPostgresMillis, maxPostgresMillis},
		{math.MaxInt64, time.Nanosecond, math.MaxInt64, math.MaxInt64},
	}
	for _, tt := range tests {
		if got := ceilUnits(tt.d, tt.unit, tt.limit); got != tt.want {
			t.Errorf("%v in %v = %d, want %d", tt.d, tt.unit, got, tt.want)
		}
	}
}

func TestNumbersAreReadWhateverTypeTheDriverChose(t *testing.T) {
	t.Parallel()
	for _, v := range []sqldriver.Value{0.2, float32(0.2), "0.200000", []byte("0.2")} {
		if d, err := scaled(v, time.Second); err != nil || d != 200*time.Millisecond {
			t.Errorf("%T(%v) = %v, %v", v, v, d, err)
		}
	}
	for _, v := range []sqldriver.Value{int64(50), uint64(50), 50.0, "50", []byte("50")} {
		if d, err := scaled(v, time.Millisecond); err != nil || d != 50*time.Millisecond {
			t.Errorf("%T(%v) = %v, %v", v, v, d, err)
		}
	}
}

func TestNumberBeyondADurationIsTheLongest(t *testing.T) {
	t.Parallel()
	if d, err := scaled(uint64(math.MaxUint64), time.Millisecond); err != nil || d != math.MaxInt64 {
		t.Errorf("got %v, %v", d, err)
	}
}

func TestOtherValuesAreNotTimes(t *testing.T) {
	t.Parallel()
	for _, v := range []sqldriver.Value{nil, []byte(nil), true, "", "ON", "NaN", math.NaN(), -1.0, int64(-1), time.Time{}} {
		if d, err := scaled(v, time.Second); err == nil {
			t.Errorf("%T(%v) was read as %v", v, v, d)
		}
	}
}
