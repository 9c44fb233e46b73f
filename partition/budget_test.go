package partition

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

func TestBudgetIsSharedInTheRatioOfTheDefaults(t *testing.T) {
	t.Parallel()
	for budget, want := range map[int][4]int{ // oltp, reporting, batch, admin
		17:  {10, 3, 2, 2},
		170: {100, 30, 20, 20},
		4:   {1, 1, 1, 1},
		5:   {2, 1, 1, 1},
		20:  {12, 4, 2, 2},
		100: {59, 17, 12, 12},
	} {
		got := mustResolve(t, standardOnly(), budget)
		if shares := [4]int{got[workload.OLTP].MaxOpenConns, got[workload.Reporting].MaxOpenConns,
			got[workload.Batch].MaxOpenConns, got[workload.Admin].MaxOpenConns}; shares != want {
			t.Errorf("budget %d: %v, want %v", budget, shares, want)
		}
	}
}

func TestExplicitSizesAreKeptAndSubtracted(t *testing.T) {
	t.Parallel()
	in := standardOnly()
	in[workload.Reporting] = PoolConfig{MaxOpenConns: 5}
	in["etl"] = PoolConfig{MaxOpenConns: 1}
	got := mustResolve(t, in, 20)
	if got[workload.Reporting].MaxOpenConns != 5 || got["etl"].MaxOpenConns != 1 ||
		got[workload.OLTP].MaxOpenConns != 10 || got[workload.Batch].MaxOpenConns != 2 || got[workload.Admin].MaxOpenConns != 2 {
		t.Fatalf("got %v", got)
	}
}

func TestPoolsWithTheirOwnServerNeitherCountNorShare(t *testing.T) {
	t.Parallel()
	in := standardOnly()
	in[workload.Reporting] = PoolConfig{DSN: "host=replica"}
	in[workload.Batch] = PoolConfig{MaxOpenConns: 500}
	got, err := resolve(in, 12, func(name workload.Name) bool { return name == workload.Batch })
	if err != nil {
		t.Fatal(err)
	}
	if got[workload.Reporting].MaxOpenConns != 3 || got[workload.Batch].MaxOpenConns != 500 ||
		got[workload.OLTP].MaxOpenConns != 10 || got[workload.Admin].MaxOpenConns != 2 {
		t.Fatalf("got %v", got)
	}
}

func TestExplicitSizesMayLeaveBudgetUnused(t *testing.T) {
	t.Parallel()
	got := mustResolve(t, poolSet{workload.OLTP: {MaxOpenConns: 3}, "etl": {MaxOpenConns: 4}}, 7)
	if got[workload.OLTP].MaxOpenConns != 3 || got["etl"].MaxOpenConns != 4 {
		t.Fatalf("got %v", got)
	}
}

func TestImpossibleBudgetIsRefusedWithItsNumbers(t *testing.T) {
	t.Parallel()
	sized := standardOnly()
	sized[workload.OLTP] = PoolConfig{MaxOpenConns: 8}
	huge := poolSet{"a": {MaxOpenConns: 999_999}, "b": {MaxOpenConns: 999_999}, "c": {MaxOpenConns: 3}}
	for _, c := range []struct {
		in     poolSet
		budget int
		want   []string
	}{
		{standardOnly(), -5, []string{"positive", "-5"}},
		{standardOnly(), 3, []string{"budget of 3", "admin, batch, oltp, reporting", "at least 1"}},
		{sized, 10, []string{"budget of 10 leaves 2", "admin, batch, reporting"}},
		{poolSet{"etl": {MaxOpenConns: 15}, workload.OLTP: {MaxOpenConns: 10}}, 20, []string{"etl, oltp", "sum to 25", "budget of 20"}},
		{huge, 20, []string{"a, b, c", "over the budget of 20"}},
	} {
		_, err := resolve(c.in, c.budget, nil)
		if err == nil {
			t.Errorf("budget %d accepted", c.budget)
			continue
		}
		for _, want := range c.want {
			if !strings.HasPrefix(err.Error(), "partition: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("budget %d: %q does not say %q", c.budget, err, want)
			}
		}
	}
}

func TestSharesSumExactlyToWhatIsLeft(t *testing.T) {
	t.Parallel()
	all := []workload.Name{workload.Admin, workload.Batch, workload.OLTP, workload.Reporting}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 20000 {
		names := all[:1+r.IntN(len(all))]
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		total := len(names) + r.IntN(1+i)
		if i%100 == 0 {
			total = 999_999 - r.IntN(1000)
		}
		shares, sum := apportion(total, names), 0
		for _, name := range names {
			if shares[name] < 1 {
				t.Fatalf("%d among %v: %v", total, names, shares)
			}
			sum += shares[name]
		}
		if sum != total || len(shares) != len(names) {
			t.Fatalf("%d among %v: %v sum to %d", total, names, shares, sum)
		}
		for _, a := range names {
			for _, b := range names {
				if weight(a) > weight(b) && shares[a] < shares[b] {
					t.Fatalf("%d among %v: %v gives %s less than %s", total, names, shares, a, b)
				}
			}
		}
	}
}

func TestLargerBudgetTakesNothingFromAPool(t *testing.T) {
	t.Parallel()
	all := []workload.Name{workload.Admin, workload.Batch, workload.OLTP, workload.Reporting}
	before := apportion(4, all)
	for total := 5; total < 2000; total++ {
		now := apportion(total, all)
		for name, n := range now {
			// Largest remainder may move one connection (the Alabama paradox).
			if n < before[name]-1 {
				t.Fatalf("%d: %v after %v", total, now, before)
			}
		}
		before = now
	}
}
