package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

const (
	soakWorkers = 16
	soakSeed    = 20260707
)

// soakOperations is how many each target gets. The two drivers of PostgreSQL share what the server has to do with it.
var soakOperations = map[string]int64{"pgx": 10_000, "pq": 2_500, "mariadb": 10_000}

// soakPools are small, so that operations queue, are rejected, and run into timeouts.
var soakPools = map[workload.Name]partition.PoolConfig{
	workload.OLTP:      {MaxOpenConns: 6, MaxWaiting: 10, AcquireTimeout: 300 * ms, StatementTimeout: time.Second},
	workload.Reporting: {MaxOpenConns: 3, MaxWaiting: 3, AcquireTimeout: 100 * ms, StatementTimeout: 30 * ms},
	workload.Batch:     {MaxOpenConns: 2, MaxWaiting: 4, AcquireTimeout: 200 * ms, StatementTimeout: 100 * ms},
}

// soak is one long run against one server.
type soak struct {
	*testing.T
	target target
	db     *sql.DB
	reg    *partition.Registry
	admin  *sql.DB
	echo   *sql.Stmt // shared by all pools
	text   string    // of echo
	nap    string    // SQL: sleeps as long as its argument says, in seconds

	operations, failures atomic.Int64
	held                 []*sql.Conn // by serves, at the end
}

// Not parallel: it counts the goroutines of the process.
func TestSoakLosesNothing(t *testing.T) {
	for _, tg := range serverTargets {
		t.Run(tg.name, func(t *testing.T) {
			server := tg.dsn(t)
			before := settledGoroutines()
			seed := uint64(soakSeed)
			t.Logf("seed %d", seed)
			census := newCensus(t, tg, server)
			s := newSoak(t, tg, census)
			watch := census.watch(t)
			s.run(seed)
			most := watch()
			s.check(most)
			s.close()
			census.empty(t)
			census.close()
			eventually(t, 20*time.Second, func() string {
				if n := runtime.NumGoroutine(); n > before {
					return fmt.Sprintf("%d goroutines, there were %d\n%s", n, before, stacks())
				}
				return ""
			})
		})
	}
}

// settledGoroutines is their number once those of earlier tests are gone.
func settledGoroutines() int {
	n := runtime.NumGoroutine()
	for still := 0; still < 20; still++ {
		time.Sleep(10 * ms)
		if now := runtime.NumGoroutine(); now < n {
			n, still = now, 0
		}
	}
	return n
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

func newSoak(t *testing.T, tg target, c *census) *soak {
	t.Helper()
	opts := []partition.Option{partition.WithLogger(quiet), partition.WithoutPool(workload.Admin)}
	for name, config := range soakPools {
		opts = append(opts, pool(name, config), partition.WithPoolConnector(name, c.connector(name)))
	}
	db, err := partition.OpenDB(c.connector("main"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	reg, _ := partition.RegistryOf(db)
	s := &soak{T: t, target: tg, db: db, reg: reg, admin: c.admin}
	s.text, s.nap = "SELECT CAST("+tg.arg+" AS CHAR(20))", "SELECT SLEEP("+tg.arg+") FROM seq_1_to_1"
	if tg.arg == "$1" {
		s.text, s.nap = "SELECT CAST($1 AS varchar)", "SELECT pg_sleep($1)"
	}
	eventually(t, 10*time.Second, func() string {
		if s.echo, err = db.Prepare(s.text); err != nil {
			return err.Error()
		}
		return ""
	})
	return s
}

// run has the workers share the operations. Each draws its own from the seed.
func (s *soak) run(seed uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var operator, workers sync.WaitGroup
	operator.Go(func() { s.operate(ctx, rand.New(rand.NewPCG(seed, 1000))) })
	for w := range soakWorkers {
		workers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for s.operations.Load() < soakOperations[s.target.name] {
				if s.operation(rng) {
					s.operations.Add(1)
				} else { // a refusal is soon had: it does not count, and is answered as a client should
					time.Sleep(time.Duration(rng.IntN(5000)) * time.Microsecond)
				}
			}
		})
	}
	workers.Wait()
	cancel()
	operator.Wait()
	for name, config := range soakPools {
		p, _ := s.reg.Pool(name)
		p.Resume()
		if err := p.Resize(config.MaxOpenConns); err != nil {
			s.Error(err)
		}
	}
}

// operate resizes and pauses pools. No pool is ever larger than it was opened, so that the cap is one number.
func (s *soak) operate(ctx context.Context, rng *rand.Rand) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(50+rng.IntN(100)) * ms):
		}
		name := s.anyPool(rng)
		p, _ := s.reg.Pool(name)
		switch rng.IntN(4) {
		case 0:
			p.Pause()
			time.Sleep(3 * ms)
			p.Resume()
		case 1:
			s.killOne(rng)
		default:
			if err := p.Resize(1 + rng.IntN(soakPools[name].MaxOpenConns)); err != nil {
				s.Error(err)
			}
		}
	}
}

func (s *soak) anyPool(rng *rand.Rand) workload.Name {
	return standard[rng.IntN(len(soakPools))] // oltp, reporting, batch
}

// check is what must hold after everything.
func (s *soak) check(most map[workload.Name]int) {
	for name, config := range soakPools {
		p, _ := s.reg.Pool(name)
		eventually(s, 20*time.Second, func() string {
			if st := p.Stats(); st.InUse != 0 || st.Waiting != 0 {
				return fmt.Sprintf("pool %s: in use %d, waiting %d", name, st.InUse, st.Waiting)
			}
			return ""
		})
		st := p.Stats()
		if st.PeakInUse > config.MaxOpenConns || most[name] > config.MaxOpenConns {
			s.Errorf("pool %s: %d permits were out and %d connections open at once, the cap is %d", name, st.PeakInUse, most[name], config.MaxOpenConns)
		}
		s.Logf("pool %s: most connections at once %d of %d; %d acquired, %d rejected, %d timeouts, %d opened", name, most[name],
			config.MaxOpenConns, st.Acquired, st.RejectedQueueFull+st.RejectedTimeout+st.RejectedPaused, st.StatementTimeouts, st.Opened)
		s.serves(in(name), name, config.MaxOpenConns)
	}
	s.Logf("%d operations, %d of them failed", s.operations.Load(), s.failures.Load())
}

// serves proves that every permit of a pool still leads to a connection: they are all held at once.
func (s *soak) serves(ctx context.Context, name workload.Name, conns int) {
	for range conns {
		eventually(s, 20*time.Second, func() string {
			c, err := s.db.Conn(ctx)
			if err != nil {
				return fmt.Sprintf("pool %s: %v", name, err)
			}
			s.held = append(s.held, c)
			return ""
		})
	}
	p, _ := s.reg.Pool(name)
	if st := p.Stats(); st.InUse != conns {
		s.Errorf("pool %s: %d in use, want %d", name, st.InUse, conns)
	}
}

func (s *soak) close() {
	for _, c := range s.held {
		c.Close()
	}
	if err := s.echo.Close(); err != nil {
		s.Error(err)
	}
	if err := s.db.Close(); err != nil {
		s.Error(err)
	}
}

// note looks at how an operation ended. Most ends are legitimate: refused, cancelled, timed out, or with its session killed. A session
// that is killed in the middle of a statement is an error of the driver's choosing.
func (s *soak) note(err error) (ran bool) {
	if err == nil {
		return true
	}
	var refused *partition.AcquireError
	if errors.As(err, &refused) && !errors.Is(err, stmttimeout.ErrExceeded) {
		return false
	}
	s.failures.Add(1)
	for _, bug := range []error{partition.ErrUnknownWorkload, partition.ErrUntagged, sql.ErrNoRows} {
		if errors.Is(err, bug) {
			s.Errorf("an operation failed with %v", err)
		}
	}
	if refused != nil {
		s.Errorf("refused and timed out: %v", err)
	}
	return true
}
