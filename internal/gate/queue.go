package gate

import (
	"math"
	"time"
)

// Waiter is a caller in the queue. It gets exactly one answer: nil with a permit, or the reason for which there is
// none. A waiter that left the queue by itself is never answered.
type Waiter struct {
	answer     chan error // room for one
	timer      *time.Timer
	prev, next *Waiter
	queued     bool
}

// waiterLocked returns a waiter, one that was used before if there is any: in a pool that is always full nearly every caller
// waits, and a waiter's channel and timer cost more than the rest.
func (g *Gate) waiterLocked() *Waiter {
	w := g.spare
	if w == nil {
		w = &Waiter{answer: make(chan error, 1), timer: time.NewTimer(math.MaxInt64)}
		w.timer.Stop()
		return w
	}
	g.spare, w.next = w.next, nil
	return w
}

// queue is a linked list of waiters, oldest first, from which any can leave at once.
type queue struct {
	head, tail *Waiter
	len        int
}

func (q *queue) push(w *Waiter) {
	w.queued = true
	w.prev = q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.len++
}

func (q *queue) pop() *Waiter {
	w := q.head
	q.remove(w)
	return w
}

// remove takes w out and reports whether it was still in.
func (q *queue) remove(w *Waiter) bool {
	if !w.queued {
		return false
	}
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	q.len--
	return true
}
