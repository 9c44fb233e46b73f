package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/internal/gate"
)

// journal writes to the log what a pool has to say of itself. What can come a thousand times a second is told at once the
// first time, then counted, and the count told now and then: a log line per rejection would be the next thing to take the
// service down. There is a timer while there is something to tell, and no goroutine; callers only count.
type journal struct {
	pool   *Pool
	bursts [kinds]burst

	awake atomic.Bool // the timer is set, or looks

	// mu guards the fields below. It is held while the timer and Close write; a caller takes it only to set a timer that
	// rests. No lock is held when it is taken, and the gate's and the log's are taken under it.
	mu        sync.Mutex
	timer     *time.Timer
	closed    bool
	seen      time.Time     // when the timer last looked; zero: it rested
	saturated time.Duration // in all, then
	pressed   uint64        // how many callers had found no permit by then
	spell     bool          // it was told that the pool is saturated
	before    time.Duration // saturated in all, before that began
}

const (
	// lookEvery is how often the timer looks, while there is anything to look at.
	lookEvery = time.Second
	// tellEvery is how many looks pass between two lines that count the same.
	tellEvery = 10
)

// What comes in bursts.
const (
	rejections = iota
	failedOpens
	kills
	leaks
	reclaims
	kinds
)

var burstKinds = [kinds]struct {
	more   string   // the line that counts
	labels []string // what it counts, each for itself
	single int32    // how many of a burst have a line of their own
}{
	rejections:  {"more callers were rejected", []string{string(ReasonQueueFull), string(ReasonAcquireTimeout), string(ReasonPaused)}, 1},
	failedOpens: {"more connections could not be opened", []string{"failed"}, 1},
	kills:       {"more statements did not end when they were told to", []string{string(EndForced), string(EndUnknown)}, 1},
	leaks:       {"more connections are held for long", []string{"leaked"}, 10},
	reclaims:    {"more connections were taken back from their holders", []string{"reclaimed"}, 10},
}

// burst is events of a kind that follow one another within two counts.
type burst struct {
	told   atomic.Int32     // how many had a line of their own; 0: there is no burst
	counts [3]atomic.Uint64 // of the others, since the last count

	looks int   // since the last count; the journal's lock guards it and the next one
	seen  int32 // told, then
}

// add reports whether an event is to have a line of its own.
func (b *burst) add(label int, single int32) bool {
	if b.told.Load() < single && b.told.Add(1) <= single {
		return true
	}
	b.counts[label].Add(1)
	return false
}

// take returns what was counted as the attributes of a line, none if nothing was.
func (b *burst) take(labels []string) (attrs []any) {
	for i, label := range labels {
		if n := b.counts[i].Swap(0); n > 0 {
			attrs = append(attrs, label, n)
		}
	}
	return attrs
}

// over ends a burst, unless something came in the same instant.
func (b *burst) over(single int32) bool {
	b.told.Store(0)
	b.seen = 0
	for i := range b.counts {
		if b.counts[i].Load() > 0 {
			b.told.Store(single)
			return false
		}
	}
	return true
}

// note counts an event, and reports whether it is to have a line of its own.
func (j *journal) note(kind, label int) bool {
	single := j.bursts[kind].add(label, burstKinds[kind].single)
	if single {
		j.wake()
	}
	return single
}

// wake sets the timer, if it rests.
func (j *journal) wake() {
	if j.awake.Load() || !j.awake.CompareAndSwap(false, true) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
	case j.timer == nil:
		j.timer = time.AfterFunc(lookEvery, j.look)
	default:
		j.timer.Reset(lookEvery)
	}
}

func (j *journal) look() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	more := j.lookAtSaturation()
	for kind := range j.bursts {
		more = j.lookAt(kind) || more
	}
	if !more {
		j.seen = time.Time{}
		j.awake.Store(false)
		// What came since it was looked at found the timer awake.
		if !j.anyBurst() || !j.awake.CompareAndSwap(false, true) {
			return
		}
	}
	j.timer.Reset(lookEvery)
}

func (j *journal) anyBurst() bool {
	for kind := range j.bursts {
		if j.bursts[kind].told.Load() > 0 {
			return true
		}
	}
	return false
}

// lookAt tells what was counted, when that is due, and reports whether the burst goes on.
func (j *journal) lookAt(kind int) bool {
	b, k := &j.bursts[kind], &burstKinds[kind]
	told := b.told.Load()
	if told == 0 {
		return false
	}
	if b.looks++; b.looks < tellEvery {
		return true
	}
	b.looks = 0
	counted := j.tellCounts(kind)
	if counted || told != b.seen {
		b.seen = told
		return true
	}
	return !b.over(k.single)
}

func (j *journal) tellCounts(kind int) bool {
	attrs := j.bursts[kind].take(burstKinds[kind].labels)
	if len(attrs) > 0 {
		j.log(slog.LevelWarn, burstKinds[kind].more, attrs...)
	}
	return len(attrs) > 0
}

// lookAtSaturation tells when a pool begins to be saturated, and when that is over: it has begun when the pool was for nine
// tenths of the time since the last look while callers waited or were turned away, and is over when it was for less than half
// of it, so that a pool which is full but for moments is not told of with each of them. It reports whether there is a reason
// to look again.
func (j *journal) lookAtSaturation() bool {
	s, t := j.pool.gate.Stats(), time.Now()
	during, of := s.SaturatedTime-j.saturated, t.Sub(j.seen)
	first, pressed := j.seen.IsZero(), s.Waited+j.pool.counters.queueFull.Load()+j.pool.counters.timeout.Load()
	inDemand := s.Waiting > 0 || pressed > j.pressed
	j.saturated, j.seen, j.pressed = s.SaturatedTime, t, pressed
	switch {
	case first:
	case !j.spell && inDemand && during >= of*9/10:
		j.spell, j.before = true, s.SaturatedTime-max(s.SaturatedFor, during)
		j.log(slog.LevelWarn, "saturated: every connection is in use, and callers wait or are turned away", "for", s.SaturatedTime-j.before,
			"in_use", s.InUse, "max_open_conns", s.Limit, "waiting", s.Waiting, "max_waiting", s.MaxWaiting)
	case j.spell && during < of/2:
		j.tellRelief(s)
	}
	return j.spell || s.SaturatedFor > 0
}

func (j *journal) tellRelief(s gate.Stats) {
	j.log(slog.LevelInfo, "no longer saturated", "lasted", s.SaturatedTime-j.before)
	j.spell = false
}

// close tells what is left to tell.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.timer != nil {
		j.timer.Stop()
	}
	if j.spell {
		j.tellRelief(j.pool.gate.Stats())
	}
	for kind := range j.bursts {
		j.tellCounts(kind)
	}
	j.closed = true
}

func (j *journal) log(level slog.Level, text string, attrs ...any) {
	j.pool.registry.later.Log(context.Background(), level, text, append([]any{"pool", j.pool.name}, attrs...)...)
}

// refused tells of a rejection.
func (j *journal) refused(err error) {
	e, ok := err.(*AcquireError)
	if !ok {
		return
	}
	label := slices.Index(burstKinds[rejections].labels, string(e.Reason))
	if label < 0 {
		return // the caller gave up
	}
	j.wake()
	if j.note(rejections, label) {
		j.log(slog.LevelWarn, "a caller is rejected", "reason", e.Reason, "waited", e.Waited, "in_use", e.InUse,
			"max_open_conns", e.MaxOpenConns, "waiting", e.Waiting, "max_waiting", e.MaxWaiting, "limited_by", e.LimitedBy)
	}
}

func (j *journal) openFailed(err error) {
	if j.pool.registry.life.Err() != nil || !j.note(failedOpens, 0) {
		return
	}
	if errors.Is(err, errDialTimeout) {
		err = fmt.Errorf("not done within the DialTimeout of %v", j.pool.config.Load().DialTimeout)
	}
	j.log(slog.LevelWarn, "a connection cannot be opened", "error", j.pool.server.redacted(err))
}

// ended tells of statements that were not ended by being told to.
func (j *journal) ended(outcome EndOutcome, took time.Duration) {
	label := slices.Index(burstKinds[kills].labels, string(outcome))
	if label >= 0 && j.note(kills, label) {
		j.log(slog.LevelWarn, "a statement did not end when it was told to", "outcome", outcome, "took", took)
	}
}

func (j *journal) held(kind int, text string, h Holder) {
	if j.note(kind, 0) {
		j.log(slog.LevelWarn, text, "tag", h.Tag, "age", h.Age, "activity", h.Activity, "stack", h.Stack)
	}
}

// secrets are passwords in a text of which nothing else is known.
var secrets = regexp.MustCompile(`(?i)((?:password|passwd|pass|pwd|secret|token)\\?"?\s*[=:]\s*)(?:'(?:\\.|[^'\\])*'|"[^"]*"|[^\s,;&]+)|(://[^\s:/@]*:)\S*(@)|([^\s:/]+:)\S*(@(?:\w*\(|/))`)

// redacted is err as it may be logged: the driver's text, without the DSN's password, and without anything that looks like
// one where the DSN is not known (a connector's).
func (s *server) redacted(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(secrets.ReplaceAllString(redactText(err.Error(), s.dsn), "${1}${2}${4}"+redacted+"${3}${5}"))
}
