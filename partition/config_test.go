package partition

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// snake turns a Go name into the key of the field. It covers the names of
// PoolConfig, not more.
func snake(name string) string {
	var b strings.Builder
	for i, r := range strings.ReplaceAll(name, "DSN", "Dsn") {
		if i > 0 && 'A' <= r && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

func TestFieldTableHasEveryFieldOfPoolConfig(t *testing.T) {
	t.Parallel()
	typ := reflect.TypeFor[PoolConfig]()
	if typ.NumField() != len(poolFields) {
		t.Fatalf("PoolConfig has %d fields, the table %d", typ.NumField(), len(poolFields))
	}
	for i, f := range poolFields {
		var c PoolConfig
		want := typ.Field(i).Name
		at := reflect.ValueOf(&c).Elem().Field(i).Addr().Interface()
		if f.name != want || f.key != snake(want) || f.at(&c) != at {
			t.Errorf("entry %d is %s, %s, want %s", i, f.name, f.key, want)
		}
	}
}

func TestNoKeyEndsInAnother(t *testing.T) {
	t.Parallel()
	for _, a := range poolKeys() {
		for _, b := range poolKeys() {
			if strings.HasSuffix(a, "_"+b) {
				t.Errorf("%s ends in %s", a, b)
			}
		}
	}
}

// setField makes field i of c some non-zero value.
func setField(c *PoolConfig, i, value int) {
	switch p := poolFields[i].at(c).(type) {
	case *int:
		*p = value
	case *time.Duration:
		*p = time.Duration(value) * time.Millisecond
	case *bool:
		*p = true
	case *string:
		*p = fmt.Sprintf("host=h%d", value)
	}
}

func randomPool(r *rand.Rand, value int) PoolConfig {
	var c PoolConfig
	for i := range poolFields {
		if r.IntN(2) == 0 {
			setField(&c, i, value)
		}
	}
	return c
}

func TestMergeTakesWhatIsSetAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		under, over := randomPool(r, 1), randomPool(r, 2)
		got := under.merge(over)
		for i, f := range poolFields {
			want := reflect.ValueOf(over).Field(i)
			if want.IsZero() {
				want = reflect.ValueOf(under).Field(i)
			}
			if g := reflect.ValueOf(got).Field(i); !g.Equal(want) {
				t.Fatalf("%s: %v over %v gave %v", f.name, over, under, g)
			}
		}
	}
}

func TestMergedConfigIsOneOptionBehindTheOther(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 2))
	random := func(value int) (c Config) {
		for _, name := range []workload.Name{workload.OLTP, workload.Batch, "etl"} {
			if r.IntN(2) == 0 {
				if c.Pools == nil {
					c.Pools = make(map[workload.Name]PoolConfig)
				}
				c.Pools[name] = randomPool(r, value)
			}
		}
		c.RequireTag = r.IntN(4) == 0
		for _, set := range []func(){
			func() { c.Default = []workload.Name{workload.OLTP, workload.Batch}[value-1] }, func() { c.Budget = value },
			func() { c.Mode = []Mode{Enforce, Observe}[value-1] }, func() { c.Pooler = poolerTransaction },
		} {
			if r.IntN(2) == 0 {
				set()
			}
		}
		return c
	}
	for range 500 {
		under, over := random(1), random(2)
		before := fmt.Sprint(under, over)
		merged := under.Merge(over)
		want, got := optionsWith([]Option{WithConfig(under), WithConfig(over)}, nil), optionsWith([]Option{WithConfig(merged)}, nil)
		if !reflect.DeepEqual(got.pools, want.pools) || got.fixed() != want.fixed() || got.budget != want.budget || (got.dialect == nil) != (want.dialect == nil) {
			t.Fatalf("%+v over %+v gave %+v", over, under, merged)
		}
		if fmt.Sprint(under, over) != before {
			t.Fatal("it changed what it merged")
		}
		if !reflect.DeepEqual(under.Merge(Config{}), under) || !reflect.DeepEqual((Config{}).Merge(over), over) {
			t.Fatalf("merged with nothing: %+v, %+v", under.Merge(Config{}), (Config{}).Merge(over))
		}
	}
}

func TestMergeKeepsNone(t *testing.T) {
	t.Parallel()
	got := PoolConfig{AcquireTimeout: time.Second}.merge(PoolConfig{AcquireTimeout: NoWait, MaxWaiting: NoQueue}).merge(PoolConfig{})
	if got.AcquireTimeout != NoWait || got.MaxWaiting != NoQueue {
		t.Fatalf("got %v", got)
	}
}

func TestPrintedConfigHoldsNoPassword(t *testing.T) {
	t.Parallel()
	pool := PoolConfig{DSN: "postgres://gina:Wall%40flower@replica/base"}
	c := Config{Pools: map[workload.Name]PoolConfig{workload.Reporting: pool}}
	for _, text := range []string{
		fmt.Sprint(pool), fmt.Sprintf("%#v", &pool), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%v %q", c, pool),
	} {
		if strings.Contains(text, "flower") || !strings.Contains(text, "replica") {
			t.Errorf("printed %s", text)
		}
	}
	var text, json strings.Builder
	slog.New(slog.NewTextHandler(&text, nil)).Info("m", "pool", pool, "config", c)
	slog.New(slog.NewJSONHandler(&json, nil)).Info("m", "pool", pool, "config", c)
	if out := text.String() + json.String(); strings.Contains(out, "flower") || strings.Count(out, "replica") != 4 {
		t.Errorf("logged %s", out)
	}
}
