package partition

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// job is a borrowing: when its caller comes, how long it then waits in the shared pool, and how long it holds.
type job struct{ arrives, waits, holds time.Duration }

// outcome is how many would have waited and been turned away.
type outcome struct{ waited, full, late uint64 }

// played is what the trial makes of jobs when it sees them as they happen.
func played(jobs []job, l limits) outcome {
	type event struct {
		at    time.Duration
		v     *visit
		leave time.Duration // 0: it enters
	}
	var events []event
	for _, j := range jobs {
		v := &visit{arrived: j.arrives, began: j.arrives + j.waits, place: nowhere}
		events = append(events, event{v.began, v, 0}, event{v.began + j.holds, v, j.holds})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	var x trial
	for _, e := range events {
		if e.leave == 0 {
			x.enter(e.v, e.at, l)
		} else {
			x.leave(e.v, e.leave, e.at, l)
		}
	}
	return outcome{x.waited, x.full, x.late}
}

// foreseen is what becomes of them where it is known from the start how long each will hold.
func foreseen(jobs []job, l limits) (o outcome) {
	free := make([]time.Duration, l.conns)
	var leave []time.Duration
	for _, j := range jobs {
		leave = slices.DeleteFunc(leave, func(t time.Duration) bool { return t <= j.arrives })
		slices.Sort(free)
		switch {
		case free[0] <= j.arrives:
			free[0] = j.arrives + j.holds
		case len(leave) >= l.waiting:
			o.full++
		case l.timeout == 0:
			o.late++
		case free[0]-j.arrives >= l.timeout:
			o.waited++
			o.late++
			leave = append(leave, j.arrives+l.timeout)
		default:
			o.waited++
			leave = append(leave, free[0])
			free[0] += j.holds
		}
	}
	return o
}

func TestTrialEndsAsIfItHadKnownHowLongEachWillHold(t *testing.T) {
	t.Parallel()
	var sum outcome
	for range 500 {
		l := limits{conns: 1 + rand.IntN(4), waiting: rand.IntN(6), timeout: time.Duration(rand.IntN(3)) * 40 * time.Millisecond}
		var jobs []job
		at, begins := time.Duration(0), time.Duration(0)
		for range 200 {
			at += 1 + rand.N(20*time.Millisecond)
			begins = max(begins, at+rand.N(100*time.Millisecond)*time.Duration(rand.IntN(2))) // the shared pool is first come, first served, too
			jobs = append(jobs, job{at, begins - at, 1 + rand.N(60*time.Millisecond)})
		}
		got, want := played(jobs, l), foreseen(jobs, l)
		if got != want {
			t.Fatalf("%+v: %+v, want %+v", l, got, want)
		}
		sum = outcome{sum.waited + got.waited, sum.full + got.full, sum.late + got.late}
	}
	if sum.waited == 0 || sum.full == 0 || sum.late == 0 {
		t.Errorf("not everything was tried: %+v", sum)
	}
}

func TestWaitBehindAnotherWorkloadIsNoneInTheTrial(t *testing.T) {
	t.Parallel()
	var jobs []job
	for i := range 100 { // one every 10 ms, and all of them begin after a second, together
		at := time.Duration(i) * 10 * time.Millisecond
		jobs = append(jobs, job{at, time.Second - at, time.Millisecond})
	}
	if got := played(jobs, limits{conns: 1}); got != (outcome{}) {
		t.Errorf("%+v", got)
	}
}

func TestPermitThatNeverComesBackTurnsAllOthersAway(t *testing.T) {
	t.Parallel()
	l := limits{conns: 1, waiting: 3, timeout: 100 * time.Millisecond}
	var x trial
	x.enter(&visit{place: nowhere}, 0, l)
	at := time.Duration(0)
	for range 10_000 {
		at += 10 * time.Millisecond
		v := &visit{arrived: at, began: at, place: nowhere}
		x.enter(v, at, l)
		x.leave(v, time.Millisecond, at+time.Millisecond, l)
	}
	if turnedAway := x.full + x.late; turnedAway < 9_990 || x.full == 0 || x.late == 0 || len(x.undecided) > 10 || len(x.leaving) > 10 {
		t.Errorf("full %d, late %d of 10000, %d are undecided, %d have not left", x.full, x.late, len(x.undecided), len(x.leaving))
	}
}

func TestTrialForgetsWhatItCannotDecide(t *testing.T) {
	t.Parallel()
	l := limits{conns: 1, waiting: 5, timeout: time.Hour}
	var x trial
	for range 5 * maxUndecided { // all at the same time: nobody knows yet how long the first one holds
		x.enter(&visit{place: nowhere}, 0, l)
	}
	if len(x.undecided) > maxUndecided || x.full != 4*maxUndecided-1 {
		t.Errorf("%d are undecided, %d were turned away", len(x.undecided), x.full)
	}
}

func TestResizedWallPlaysWithItsNewSize(t *testing.T) {
	t.Parallel()
	var x trial
	come := func(at time.Duration, conns int) *visit {
		v := &visit{arrived: at, began: at, place: nowhere}
		x.enter(v, at, limits{conns: conns})
		x.decide(at+1, limits{conns: conns})
		return v
	}
	first, second := come(1, 2), come(2, 2)
	if x.full != 0 {
		t.Fatalf("%d were turned away from two permits", x.full)
	}
	x.leave(second, 1, 3, limits{conns: 1})
	if come(10, 1); x.full != 1 {
		t.Errorf("%d were turned away when one permit was left, and in use", x.full)
	}
	x.leave(first, 10, 11, limits{conns: 1})
	if come(12, 1); x.full != 1 {
		t.Errorf("%d were turned away when it was free", x.full)
	}
}
