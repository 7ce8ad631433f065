package main

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// tooLate is the delay of somebody who has a backlog.
const tooLate = time.Second

// tally keeps the books of who ran when. Safe for concurrent use.
type tally struct {
	window atomic.Pointer[window]
	late   atomic.Int64 // when a start was last late, as Unix nanoseconds
	ended  atomic.Int64 // runs that are over, with all that the contestant writes about them
	notRun atomic.Int64 // records that say why something was not run
}

// window is the time in which starts count. Whoever cannot keep up starts runs in it that were due before, with all
// their delay, and others after it.
type window struct {
	from, to time.Time
	delays   []time.Duration // one for each start; the slice is as large as there can be
	starts   atomic.Int64
}

func (t *tally) open(from time.Time, seconds, expected int) *window {
	length := time.Duration(seconds) * time.Second
	w := &window{from: from, to: from.Add(length), delays: make([]time.Duration, 2*expected)} // twice, for a backlog
	t.window.Store(w)
	return w
}

// started is called by a handler, first thing, with the scheduled time that it was called for.
func (t *tally) started(due time.Time) {
	now := time.Now()
	if now.Sub(due) > tooLate {
		t.late.Store(now.UnixNano())
	}
	w := t.window.Load()
	if w == nil || now.Before(w.from) || !now.Before(w.to) {
		return
	}
	if i := int(w.starts.Add(1)) - 1; i < len(w.delays) {
		w.delays[i] = now.Sub(due)
	}
}

// lateSince reports whether a start has been late since then.
func (t *tally) lateSince(then time.Time) bool { return t.late.Load() > then.UnixNano() }

func (t *tally) finished() { t.ended.Add(1) }

// close is the delays of the runs that count, the shortest first.
func (t *tally) close() []time.Duration {
	w := t.window.Swap(nil)
	delays := slices.Clone(w.delays[:min(int(w.starts.Load()), len(w.delays))])
	slices.Sort(delays)
	return delays
}

// percentile of sorted delays; 0 when there are none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

// ledger remembers for which scheduled times a cron loop will call a job, oldest first. Such loops do not tell the
// job. It belongs to the measurement, not to the contestant: its memory is not the contestant's.
type ledger struct {
	mu  sync.Mutex
	due []time.Time
}

func (l *ledger) push(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.due); n == 0 || t.After(l.due[n-1]) {
		l.due = append(l.due, t)
	}
}

// pop is the scheduled time of the call that is made now; zero when none was announced.
func (l *ledger) pop() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.due) == 0 {
		return time.Time{}
	}
	t := l.due[0]
	l.due = slices.Delete(l.due, 0, 1)
	return t
}
