package conformance

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/json"
	"math"
	"math/big"
	"net"
	"strings"
	"time"
)

type (
	myInt    int64
	myString string
	myBytes  []byte
	myBool   bool
)

// money is a Valuer whose method has a value receiver: a call through a nil pointer panics.
type money struct{ cents int64 }

func (m money) Value() (sqldriver.Value, error) { return m.cents, nil }

// label is a Valuer whose method has a pointer receiver, and copes with nil.
type label struct{ text string }

func (l *label) Value() (sqldriver.Value, error) {
	if l == nil {
		return "nil label", nil
	}
	return l.text, nil
}

// valuer is a Valuer of anything.
type valuer struct {
	value any
	err   error
}

func (v valuer) Value() (sqldriver.Value, error) { return v.value, v.err }

// value is an argument under a name.
type value struct {
	name  string
	value any
}

func ptr[T any](v T) *T { return &v }

var (
	berlin = time.FixedZone("UTC+2", 2*60*60)
	noon   = time.Date(2024, 2, 29, 12, 30, 15, 123456000, time.UTC)
)

// values are arguments of every kind that programs pass, also by mistake.
var values = []value{
	{"nil", nil},
	{"bool", true}, {"named bool", myBool(true)}, {"pointer to bool", ptr(false)},
	{"int", 1}, {"int8", int8(-8)}, {"int16", int16(-16)}, {"int32", int32(-32)}, {"int64", int64(math.MinInt64)},
	{"uint", uint(1)}, {"uint8", uint8(8)}, {"uint16", uint16(16)}, {"uint32", uint32(math.MaxUint32)}, {"uint64", uint64(64)},
	{"uint64 past int64", uint64(1) << 63}, {"largest uint64", uint64(math.MaxUint64)}, {"named int", myInt(7)},
	{"pointer to int", ptr(3)}, {"nil pointer to int", (*int)(nil)}, {"pointer to pointer", ptr(ptr(3))}, {"pointer to nil pointer", ptr((*int)(nil))},
	{"float32", float32(1.5)}, {"float64", 1.25}, {"NaN", math.NaN()}, {"infinity", math.Inf(1)}, {"rune", 'x'}, {"complex", 1i},
	{"string", "text"}, {"empty string", ""}, {"quotes", `it's "quoted" \ $1 ? 100%`}, {"NUL", "a\x00b"}, {"unicode", "größer ☃ 𝄞"},
	{"invalid UTF-8", "\xff\xfe"}, {"number in a string", "12"}, {"long string", strings.Repeat("x", 20_000)}, {"named string", myString("named")},
	{"pointer to string", ptr("pointed")}, {"nil pointer to string", (*string)(nil)},
	{"bytes", []byte("bytes")}, {"binary", []byte{0, 255, '\'', '\\', '\n'}}, {"empty bytes", []byte{}}, {"nil bytes", []byte(nil)},
	{"named bytes", myBytes("named")}, {"raw JSON", json.RawMessage(`{"a": [1, null]}`)}, {"RawBytes", sql.RawBytes("raw")},
	{"time", noon}, {"time in a zone", noon.In(berlin)}, {"zero time", time.Time{}}, {"pointer to time", &noon}, {"nil pointer to time", (*time.Time)(nil)},
	{"duration", 90 * time.Second},
	{"Valuer", money{150}}, {"pointer to Valuer", &money{151}}, {"nil pointer to Valuer", (*money)(nil)},
	{"pointer Valuer", &label{"labelled"}}, {"nil pointer Valuer", (*label)(nil)},
	{"Valuer of nil", valuer{}}, {"Valuer that fails", valuer{err: errMine}}, {"Valuer of a Valuer", valuer{value: money{3}}},
	{"Valuer of a slice", valuer{value: []int64{1}}}, {"Valuer of an int", valuer{value: 5}}, {"Valuer of uint64", valuer{value: uint64(1) << 63}},
	{"NullString", sql.NullString{String: "there", Valid: true}}, {"null NullString", sql.NullString{}},
	{"NullInt64", sql.NullInt64{Int64: 4, Valid: true}}, {"null NullTime", sql.NullTime{}}, {"Null[int]", sql.Null[int]{V: 6, Valid: true}},
	{"Null[string] that is null", sql.Null[string]{}}, {"Null[[]int64]", sql.Null[[]int64]{V: []int64{1}, Valid: true}},
	{"[]int64", []int64{1, 2}}, {"[]int", []int{1, 2}}, {"empty []int64", []int64{}}, {"nil []int64", []int64(nil)}, {"[]float64", []float64{1.5}},
	{"[]string", []string{"a", "b,\"c\""}}, {"[]bool", []bool{true}}, {"[]any", []any{1, "a", nil}}, {"[][]byte", [][]byte{{1}}}, {"[][]int64", [][]int64{{1}, {2}}},
	{"[]time.Time", []time.Time{noon}}, {"[]*int", []*int{ptr(1), nil}}, {"array", [2]int{1, 2}}, {"UUID", [16]byte{1, 15: 9}},
	{"map", map[string]any{"a": 1}}, {"nil map", map[string]any(nil)}, {"map of strings", map[string]string{"k": "v"}},
	{"struct", struct{ A int }{1}}, {"pointer to struct", &struct{ A int }{1}}, {"empty struct", struct{}{}},
	{"json.Number", json.Number("12.5")}, {"IP", net.IPv4(127, 0, 0, 1)}, {"big.Int", big.NewInt(12)}, {"error", errMine},
	{"channel", (chan int)(nil)}, {"func", (func())(nil)},
	{"named argument", sql.Named("a", 1)}, {"badly named argument", sql.Named("1a", 1)}, {"Out", sql.Out{Dest: ptr(1)}},
}
