package gate

// The owner of a gate that parks permits keeps a word for what each permit was given for. Parking one goes so:
//
//	if g.Calm() {
//		g.Park()
//		word.Store(parked)
//		if g.Calm() || !word.CompareAndSwap(parked, taken) {
//			return // it is parked, or somebody has taken it up by now
//		}
//		g.Unpark()
//	}
//	g.Release()
//
// and taking it up again so:
//
//	if g.Calm() && word.CompareAndSwap(parked, taken) {
//		g.TakeParked()
//	}

// Calm reports whether permits may be parked, and parked ones taken up: nobody waits, and the gate is neither paused, nor
// closed, nor over its limit. Who parks a permit asks again afterwards.
func (g *Gate) Calm() bool { return g.calm.Load() }

// Park makes a permit that is out count as free. It comes before the store that offers the permit to others.
func (g *Gate) Park() {
	g.parked.Add(1)
	g.saturation.mark(g)
}

// Unpark undoes Park.
func (g *Gate) Unpark() {
	g.parked.Add(-1)
	g.used()
}

// TakeParked takes a parked permit up again.
func (g *Gate) TakeParked() {
	g.Unpark()
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
