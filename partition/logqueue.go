package partition

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

var _ slog.Handler = lateHandler{}

// lateHandler hands lines to the user's handler on a goroutine of its own, in order. A handler may be slow, or stuck, or
// write to the very database; and who has something to tell has a permit, a caller's dial, or a lock.
type lateHandler struct {
	to    slog.Handler
	queue *lineQueue
	wait  time.Duration // for the line to be written, at most
}

// Enabled implements slog.Handler.
func (h lateHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.to.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h lateHandler) Handle(_ context.Context, r slog.Record) error {
	h.queue.add(h.to, r)
	if h.wait > 0 {
		h.queue.flush(h.wait)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (h lateHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.to = h.to.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h lateHandler) WithGroup(name string) slog.Handler {
	h.to = h.to.WithGroup(name)
	return h
}

const (
	// maxLines bounds what waits for a handler that is stuck.
	maxLines = 1000
	// lineTime is how long who tells of what is no event, such as a pool's first connection, waits for the handler.
	lineTime = 100 * time.Millisecond
	// lastLineTime is how long Close waits.
	lastLineTime = time.Second
)

// lineQueue is the lines that are yet to be written. It has a goroutine while there are any.
type lineQueue struct {
	mu      sync.Mutex // guards the rest; a leaf
	lines   []lateLine
	dropped int           // for want of room, since one was last written
	written chan struct{} // closed when all are; nil: there are none
}

type lateLine struct {
	to     slog.Handler
	record slog.Record
}

func (q *lineQueue) add(to slog.Handler, r slog.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) >= maxLines {
		q.dropped++
		return
	}
	if q.dropped > 0 {
		r.AddAttrs(slog.Int("lines_dropped_before", q.dropped))
		q.dropped = 0
	}
	q.lines = append(q.lines, lateLine{to, r.Clone()})
	if q.written == nil {
		q.written = make(chan struct{})
		go q.write()
	}
}

func (q *lineQueue) write() {
	for {
		lines := q.take()
		if lines == nil {
			return
		}
		for _, l := range lines {
			l.to.Handle(context.Background(), l.record)
		}
	}
}

// take returns nil when everything is written.
func (q *lineQueue) take() []lateLine {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines := q.lines
	q.lines = nil
	if lines == nil {
		close(q.written)
		q.written = nil
	}
	return lines
}

// flush waits until everything is written, for at most d.
func (q *lineQueue) flush(d time.Duration) {
	q.mu.Lock()
	written := q.written
	q.mu.Unlock()
	if written == nil {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
	}
}
