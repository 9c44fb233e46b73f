package gate

import "time"

// The owner of a gate that parks permits keeps a word for what each permit was given for. Parking one goes so:
//
//	if g.Calm() {
//		g.Park(now)
//		word.Store(parked)
//		if g.Calm() || !word.CompareAndSwap(parked, taken) {
//			return // it is parked, or somebody has taken it up by now
//		}
//		g.Unpark(now)
//	}
//	g.Release()
//
// and taking it up again so:
//
//	if g.Calm() && word.CompareAndSwap(parked, taken) {
//		g.TakeParked(now)
//	}
//
// now is the time on the gate's clock.

// Calm reports whether permits may be parked, and parked ones taken up: nobody waits, and the gate is neither paused, nor
// closed, nor over its limit. Who parks a permit asks again afterwards.
func (g *Gate) Calm() bool { return g.calm.Load() }

// Park makes a permit that is out count as free. It comes before the store that offers the permit to others.
func (g *Gate) Park(now time.Duration) {
	g.parked.Add(1)
	g.saturation.mark(g, int64(now))
}

// Unpark undoes Park.
func (g *Gate) Unpark(now time.Duration) {
	g.parked.Add(-1)
	g.used(int64(now))
}

// TakeParked takes a parked permit up again.
func (g *Gate) TakeParked(now time.Duration) {
	g.Unpark(now)
	g.acquired.Add(1)
}

// AnyParked reports whether a permit is parked.
func (g *Gate) AnyParked() bool { return g.parked.Load() > 0 }

// ReleaseParkedLocked gives a parked permit back for good.
func (g *Gate) ReleaseParkedLocked() {
	g.out.Add(-1)
	g.parked.Add(-1)
	g.serveLocked()
}
