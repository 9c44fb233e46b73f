package partition

import (
	"slices"
	"time"
)

// trial is a workload's own pool, played beside what really happens: who comes when it really came, and holds its permit
// for as long as it really held its connection, but waits for nobody outside its workload. So it knows, of each borrowing,
// whether it would have had to wait, or would have been turned away, had all before it been treated so.
//
// It runs behind the event: a hold ends in the trial when it began there plus as long as it lasted, which is known only
// when it is over. Until then it is known to last at least as long as it has. A caller for whom that decides nothing is
// undecided, and so is everybody after it: places are given in order of arrival.
//
// What it cannot know: who would have been turned away did run in fact, and its load was on the server; who left the shared
// pool's queue never held anything, and is not in it.
type trial struct {
	places    []place
	undecided []*visit        // oldest first
	leaving   []time.Duration // when each of those who had to wait left the queue

	waited     uint64
	full, late uint64 // turned away
	usual      uint64 // turned away while nobody held for longer than usual
}

// visit is a borrowing as the trial sees it.
type visit struct {
	arrived, began time.Duration // began: really
	held           time.Duration // once it is over
	over           bool
	place          int // in the trial; nowhere: none yet, or turned away
}

const nowhere = -1

// always is a time before every other. (The clock's zero is arbitrary.)
const always = -never

// place is a permit.
type place struct {
	start time.Duration // of the hold, in the trial
	end   time.Duration // of the same; if visit is nil
	visit *visit        // whose hold is not over
}

// limits are those of the pool that is played, and how long holds are.
type limits struct {
	conns, waiting int
	timeout        time.Duration
	usual, recent  time.Duration // more than usual is unusual; usual is 0 as long as none is over
}

// maxUndecided bounds the memory. More are undecided only where far more come than could ever be served.
const maxUndecided = 1024

func (x *trial) enter(v *visit, t time.Duration, l limits) {
	x.undecided = append(x.undecided, v)
	if len(x.undecided) > maxUndecided {
		x.refuse(&x.full, t, l)
		x.undecided = x.undecided[1:]
	}
	x.decide(t, l)
}

func (x *trial) leave(v *visit, held, t time.Duration, l limits) {
	v.held, v.over = held, true
	if v.place != nowhere {
		p := &x.places[v.place]
		p.end, p.visit = p.start+held, nil
	}
	x.decide(t, l)
}

func (x *trial) decide(t time.Duration, l limits) {
	for len(x.undecided) > 0 && x.place(x.undecided[0], t, l) {
		x.undecided[0] = nil
		x.undecided = x.undecided[1:]
	}
}

// place finds out what becomes of v, if that is known at t.
func (x *trial) place(v *visit, t time.Duration, l limits) (known bool) {
	if len(x.places) < l.conns {
		x.places = append(x.places, place{end: always})
	}
	free, end, atLeast := x.next(v.arrived, t, l)
	if end <= v.arrived {
		x.seat(v, free, v.arrived)
		return true
	}
	if atLeast <= v.arrived {
		return false
	}
	wait := min(end, atLeast) - v.arrived // at least
	switch {
	case x.queued(v.arrived) >= l.waiting:
		x.refuse(&x.full, t, l)
	case l.timeout == 0:
		x.refuse(&x.late, t, l)
	case wait >= l.timeout:
		x.wait(v.arrived + l.timeout)
		x.refuse(&x.late, t, l)
	case end <= atLeast:
		x.wait(end)
		x.seat(v, free, end)
	default:
		return false
	}
	return true
}

// next is the first place that is free by arrived or else the one that is free first, and when; and when one of the others
// will be at the earliest.
func (x *trial) next(arrived, t time.Duration, l limits) (free int, end, atLeast time.Duration) {
	end, atLeast = never, never
	for i := range x.places[:min(len(x.places), l.conns)] {
		p := &x.places[i]
		if p.visit != nil {
			atLeast = min(atLeast, p.start+max(t-p.visit.began, 0))
			continue
		}
		if p.end < end {
			free, end = i, p.end
		}
		if end <= arrived {
			break
		}
	}
	return free, end, atLeast
}

// seat has v hold place i since start.
func (x *trial) seat(v *visit, i int, start time.Duration) {
	v.place = i
	x.places[i] = place{start: start, end: start + v.held, visit: v}
	if v.over {
		x.places[i].visit = nil
	}
}

func (x *trial) wait(until time.Duration) {
	x.waited++
	x.leaving = append(x.leaving, until)
}

// queued is how many wait at t.
func (x *trial) queued(t time.Duration) int {
	x.leaving = slices.DeleteFunc(x.leaving, func(left time.Duration) bool { return left <= t })
	return len(x.leaving)
}

func (x *trial) refuse(count *uint64, t time.Duration, l limits) {
	*count++
	if max(l.recent, x.age(t)) <= l.usual {
		x.usual++
	}
}

// age is how long those who hold now have done so, on average.
func (x *trial) age(t time.Duration) time.Duration {
	var sum, n time.Duration
	for _, p := range x.places {
		if p.visit != nil {
			sum, n = sum+t-p.visit.began, n+1
		}
	}
	return sum / max(n, 1)
}
