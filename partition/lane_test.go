package partition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/fakedb"
	"github.com/sqlbulkhead/sqlbulkhead/partition"
	"github.com/sqlbulkhead/sqlbulkhead/stmttimeout"
	"github.com/sqlbulkhead/sqlbulkhead/workload"
)

// endable is a dialect of sessions that can be ended from another one.
type endable struct{ stmttimeout.Dialect }

var _ stmttimeout.Ender = endable{}

func (endable) Setup(ctx context.Context, s stmttimeout.Session, _ stmttimeout.Settings) (stmttimeout.Applied, error) {
	row, err := s.QueryRow(ctx, "id")
	if err != nil {
		return stmttimeout.Applied{}, err
	}
	return stmttimeout.Applied{Enforcement: stmttimeout.EnforcedByClient, Session: fmt.Sprint(row[0])}, nil
}

func (endable) Control(ctx context.Context, s stmttimeout.Session) error {
	return s.Exec(ctx, "set control=yes")
}

func (endable) End(ctx context.Context, s stmttimeout.Session, victim string, _ bool) (bool, error) {
	err := s.Exec(ctx, "sleep 10ms; ok end "+victim)
	return err == nil, err
}

func endably(t *testing.T, opts ...partition.Option) *rig {
	t.Helper()
	server := fakedb.New(fakedb.WithCancelBreaks(), fakedb.WithKillSeenBy(fakedb.SessionResetter)) // as in pgx
	return setup(t, server, append(opts, partition.WithDialect(endable{stmttimeout.ClientOnly()}), limited(50*ms))...)
}

// cutShort has n statements run into their limit at once, and waits until their ends are known.
func (r *rig) cutShort(n int) {
	r.Helper()
	var all sync.WaitGroup
	for range n {
		all.Go(func() { r.db.ExecContext(oltp, "hang") })
	}
	all.Wait()
	synctest.Wait()
	for r.stats(workload.OLTP).Ending > 0 {
		time.Sleep(ms)
	}
}

// control are the sessions over which statements are ended.
func (r *rig) control() (ids []int) {
	for _, c := range r.server.Conns() {
		if c.Open && r.server.Settings(c.ID)["control"] == "yes" {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func TestStatementIsEndedAlthoughTheSessionsToDoItOverAreLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(r *rig){
		"while they idled": func(r *rig) { r.server.Kill(r.control()...) },
		"in the middle": func(r *rig) {
			own := r.control()
			r.server.On(fakedb.Exec, func(_ context.Context, call fakedb.Call) error {
				if !slices.Contains(own, call.Conn) {
					return nil
				}
				r.server.Kill(call.Conn)
				return errors.New("terminating connection")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, opt := captured()
				r := endably(t, opt)
				r.cutShort(2)
				if n := len(r.control()); n != 2 {
					t.Fatalf("%d sessions", n)
				}
				lose(r)
				r.cutShort(1)
				if s := r.stats(workload.OLTP); s.EndedConfirmed != 3 || s.EndProblem != "" || len(log.about("cannot be ended")) > 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// database/sql dials for those who wait in its own queue, under a context that never ends.
func TestDialThatHangsKeepsNoSessionFromBeingMadeLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := endably(t)
		r.cutShort(2)
		r.fill(workload.OLTP, 10) // the pool itself will not need to dial
		dead := r.control()
		r.server.On(fakedb.Dial, fakedb.Delay(time.Hour))
		r.server.On(fakedb.Exec, func(_ context.Context, call fakedb.Call) error {
			if strings.Contains(call.Text, "ok end") && slices.Contains(dead, call.Conn) {
				time.Sleep(10 * ms) // in which others queue
				r.server.Kill(call.Conn)
			}
			return nil
		})
		r.cutShort(6)
		r.server.On(fakedb.Dial, nil)
		time.Sleep(10 * time.Second)
		before := r.stats(workload.OLTP).EndedConfirmed
		r.cutShort(1)
		if s := r.stats(workload.OLTP); s.EndedConfirmed != before+1 {
			t.Errorf("%+v", s)
		}
	})
}
