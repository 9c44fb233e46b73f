package partition

import (
	"sync/atomic"
	"time"
)

// loan is who has a connection and since when, in one word that changes hands by compare-and-swap.
type loan struct{ word atomic.Int64 }

// holder is who has a connection.
type holder int64

const (
	inHouse  holder = iota // its pool: idle, or on its way to a borrower, or to be closed
	borrowed               // a borrower
	parked                 // nobody, but its permit is still out: the next borrower need only take it (see gate.Park)
)

// holderBits leave 73 years for the time.
const holderBits = 2

func word(h holder, t time.Duration) int64 { return int64(t)<<holderBits | int64(h) }

func (l *loan) set(h holder, t time.Duration) { l.word.Store(word(h, t)) }

func (l *loan) get() (holder, time.Duration) {
	w := l.word.Load()
	return holder(w & (1<<holderBits - 1)), time.Duration(w >> holderBits)
}

func (l *loan) since() time.Duration {
	_, t := l.get()
	return t
}

// change hands the connection over, if it is still as it was seen.
func (l *loan) change(from holder, since time.Duration, to holder, t time.Duration) bool {
	return l.word.CompareAndSwap(word(from, since), word(to, t))
}
