package starvation

import (
	"context"
	"sync"
	"time"
)

const (
	watchEvery = 100 * time.Millisecond
	// ending is how long a session whose client is gone may still be listed.
	ending = 500 * time.Millisecond
)

// watcher counts the pools' sessions on the server. The two at most over which
// partitions end statements there are in no pool: on PostgreSQL their name tells
// them, elsewhere their database. A session that is only just ending is none:
// what counts is what the server lists all of the time from one look to another
// that is ending later.
type watcher struct {
	stop func()
	most int // of all looks; to be read after stop
}

func watch(st *stage) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := new(watcher)
	var watching sync.WaitGroup
	watching.Go(func() { w.look(ctx, st) })
	w.stop = func() {
		cancel()
		watching.Wait()
	}
	return w
}

// look ignores that the server does not answer: then nobody opens a session.
func (w *watcher) look(ctx context.Context, st *stage) {
	var looks []map[int64]bool
	for sleep(ctx, watchEvery) {
		now, err := st.sessions(ctx)
		if err != nil {
			looks = nil
			continue
		}
		if looks = append(looks, now); len(looks) <= int(ending/watchEvery) {
			continue
		}
		w.most = max(w.most, lasting(looks))
		looks = looks[1:]
	}
}

// lasting counts the sessions that are there in every look.
func lasting(looks []map[int64]bool) (n int) {
	for id := range looks[0] {
		lasts := true
		for _, look := range looks[1:] {
			lasts = lasts && look[id]
		}
		if lasts {
			n++
		}
	}
	return n
}
