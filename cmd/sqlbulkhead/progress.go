package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// screen shows the progress: on a terminal one line per arrangement, written
// anew every second, otherwise a line every second.
type screen struct {
	out  io.Writer
	live bool
}

func newScreen(out io.Writer) screen {
	return screen{out, isTerminal(out) && os.Getenv("TERM") != "dumb"}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// watch shows the progress of an arrangement until the returned function is
// called, which shows the end.
func (s screen) watch(name string, total time.Duration, count *tally) (stop func()) {
	begin, done := time.Now(), make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			if passed := time.Since(begin); passed < total { // the end is shown below
				s.show(name, passed, total, count.soFar())
			}
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		shown.Wait()
		s.show(name, time.Since(begin), total, count.soFar())
		if s.live {
			fmt.Fprintln(s.out)
		}
	}
}

func (s screen) show(name string, passed, total time.Duration, c counts) {
	before, after := "", "\n"
	if s.live {
		before, after = "\r", "\x1b[K"
	}
	fmt.Fprintf(s.out, "%s%-15s %2d/%s  logins %d ok %d failed, reports %d ok %d rejected%s", before, name,
		min(passed, total)/time.Second, short(total), c.loginsOK, c.loginsFailed, c.reportsOK, c.reportsRejected, after)
}
