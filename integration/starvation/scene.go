package starvation

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/report"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

const (
	loginEvery    = 10 * time.Millisecond // whether the earlier ones are done or not
	loginDeadline = time.Second
	pauseBetween  = 100 * time.Millisecond // after an attempt of anybody else that failed
)

// scene is a day under way in one arrangement.
type scene struct {
	t     *testing.T
	stage *stage
	other *stage // of the reporting pool, on the day that it has a server of its own
	pools pools
	takes time.Duration // a report
	db    *sql.DB
	reg   *partition.Registry // nil in the shared pool
	began time.Time

	ctx     context.Context // of the crowd
	end     context.CancelFunc
	crowds  sync.WaitGroup
	watcher *watcher

	mu     sync.Mutex // guards the following
	logins []login
	spans  []report.Span
	calls  map[workload.Name]*calls
	down   time.Time // when the server went away
	up     time.Time // when it was back; zero: it never went away
}

// login is one that has ended, with its error.
type login struct {
	report.Login
	err error
}

// calls is what became of the calls of one workload that is not login.
type calls struct {
	served, refused, failed int
	longest                 time.Duration // of those that ended by themselves or were cut short by a timeout
	patience                time.Duration // the longest until a refusal
	recovered               time.Duration // from when the server was back to the begin of a call that was served; 0: none was
}

func (a arrangement) begin(t *testing.T, st, other *stage, d day) *scene {
	t.Helper()
	s := &scene{t: t, stage: st, other: other, pools: d.pools, takes: d.report, calls: make(map[workload.Name]*calls)}
	db, err := a.open(s)
	if err != nil {
		t.Fatal(err)
	}
	s.db = db
	t.Cleanup(func() { db.Close() }) // where something ends the test
	s.reg, _ = partition.RegistryOf(db)
	s.ctx, s.end = context.WithCancel(context.Background())
	s.warm()
	s.began = time.Now()
	return s
}

// warm opens all connections, so that what is measured later is no dial.
func (s *scene) warm() {
	s.t.Helper()
	var conns []*sql.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for name, c := range s.pools {
		for range c.MaxOpenConns {
			for deadline := time.Now().Add(30 * time.Second); ; {
				conn, err := s.db.Conn(in(s.ctx, name))
				if err == nil {
					conns = append(conns, conn)
					break
				}
				if time.Now().After(deadline) {
					s.t.Fatalf("cannot open %d connections: %v", total, err)
				}
			}
		}
	}
}

// logIn is the open loop: a slow login does not put off the next. It ends with
// the context, and returns when the last login is back.
func (s *scene) logIn(ctx context.Context) (logins []login) {
	var all sync.WaitGroup
	var mu sync.Mutex // guards logins
	began := time.Now()
	for i := 0; ; i++ {
		due := began.Add(time.Duration(i) * loginEvery)
		if !sleep(ctx, time.Until(due)) {
			break
		}
		all.Go(func() {
			err := s.lookUp(due, i)
			l := login{report.Login{At: due.Sub(s.began), Took: time.Since(due), Failed: err != nil}, err}
			mu.Lock()
			defer mu.Unlock()
			logins = append(logins, l)
		})
	}
	all.Wait()
	return logins
}

func (s *scene) lookUp(due time.Time, user int) error {
	ctx, cancel := context.WithDeadline(in(context.Background(), workload.OLTP), due.Add(loginDeadline))
	defer cancel()
	var name string
	return s.db.QueryRowContext(ctx, s.stage.words.login, user%users+1).Scan(&name)
}

// plain leaves the errors out.
func plain(logins []login) (without []report.Login) {
	for _, l := range logins {
		without = append(without, l.Login)
	}
	return without
}

// failure is the error of the first login that failed outside the spans.
func (s *scene) failure() error {
	for _, l := range s.logins {
		if l.Failed && !l.Excused(s.spans) {
			return l.err
		}
	}
	return nil
}

// quiet is how long logins take when there is nothing else.
func (s *scene) quiet(d time.Duration) report.Summary {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	return report.Summarise(plain(s.logIn(ctx)), nil)
}

// play runs the day's trouble beside logins. It returns when the crowd has gone.
func (s *scene) play(trouble func(*scene)) {
	s.began = time.Now()
	s.watcher = watch(s.stage)
	ctx, stop := context.WithCancel(s.ctx)
	var logins sync.WaitGroup
	logins.Go(func() { s.logins = s.logIn(ctx) })
	finish := sync.OnceFunc(func() {
		stop()
		logins.Wait()
		s.end() // the crowd is at work until the last login is back
		s.crowds.Wait()
		s.watcher.stop()
	})
	s.t.Cleanup(finish) // where the trouble ends the test
	trouble(s)
	finish()
}

// wait lets the day go on.
func (s *scene) wait(d time.Duration) { sleep(s.ctx, d) }

// during marks what the fault does to the server as a time in which logins may
// fail: from its begin to two seconds after the server is back.
func (s *scene) during(name string, fault func()) {
	s.away(fault)
	s.mu.Lock()
	defer s.mu.Unlock()
	from, to := s.down.Sub(s.began), s.up.Sub(s.began)+recovery
	s.spans = append(s.spans, report.Span{Name: name, From: report.Millis(from), To: report.Millis(to)})
}

// away runs a fault, after which every pool must serve again.
func (s *scene) away(fault func()) {
	down := time.Now()
	fault()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.up = down, time.Now()
}

// crowd has n workers attempt the same again and again, with a rest in between. They begin one after the other, over the
// time of one rest.
func (s *scene) crowd(n int, name workload.Name, rest time.Duration, attempt func(ctx context.Context, worker int) error) {
	ctx := in(s.ctx, name)
	for worker := range n {
		s.crowds.Go(func() {
			sleep(ctx, rest*time.Duration(worker)/time.Duration(n))
			for ctx.Err() == nil {
				began := time.Now()
				err := attempt(ctx, worker)
				if ctx.Err() == nil {
					s.note(name, began, time.Since(began), err)
				}
				if err != nil {
					sleep(ctx, pauseBetween)
				}
				sleep(ctx, rest)
			}
		})
	}
}

func (s *scene) note(name workload.Name, began time.Time, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[name]
	if c == nil {
		c = new(calls)
		s.calls[name] = c
	}
	if errors.Is(err, partition.ErrRejected) {
		c.refused++
		c.patience = max(c.patience, took)
		return
	}
	c.longest = max(c.longest, took)
	if err != nil {
		c.failed++
		return
	}
	c.served++
	// What began while the server was away has found it back, perhaps before the one who brought it back knew.
	if after := max(began.Sub(s.up), 1); !s.up.IsZero() && began.After(s.down) && (c.recovered == 0 || after < c.recovered) {
		c.recovered = after
	}
}

// close gives everything back. It says what did not come back.
func (s *scene) close() (left string) {
	if s.reg != nil {
		left = s.settled()
	}
	if err := s.db.Close(); err != nil {
		s.t.Errorf("close: %v", err)
	}
	return left
}

// settled waits until every permit is back.
func (s *scene) settled() (left string) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left = ""
		for _, p := range s.reg.Pools() {
			if st := p.Stats(); st.InUse != 0 || st.Waiting != 0 {
				left += string(p.Name()) + " "
			}
		}
		if left == "" || time.Now().After(deadline) {
			return left
		}
	}
}

// sleep is false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
