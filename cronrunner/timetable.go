package cronrunner

import (
	"container/heap"
	"slices"
	"time"
)

// timetable knows which jobs are due. It has one entry per distinct schedule, with the jobs that share
// it, so that a thousand jobs at midnight cost one computation of the next time. Not safe for concurrent
// use: it belongs to the loop of one term.
type timetable struct {
	entries map[string]*entry
	byTime  entryHeap
}

type entry struct {
	key      string
	schedule *Schedule
	delay    time.Duration
	next     time.Time
	claimed  time.Time // the next time for which its jobs were looked at ahead
	index    int       // in byTime; -1 when the schedule is exhausted
	jobs     []*jobState
}

func newTimetable() *timetable { return &timetable{entries: make(map[string]*entry)} }

// add puts a job into the timetable; it is due at the first scheduled time after now.
func (t *timetable) add(js *jobState, now time.Time) {
	key := js.job.scheduleKey()
	e := t.entries[key]
	if e == nil {
		e = &entry{key: key, schedule: js.job.schedule, delay: js.job.delay, index: -1}
		e.advance(now)
		t.entries[key] = e
		if !e.next.IsZero() {
			heap.Push(&t.byTime, e)
		}
	}
	e.jobs = append(e.jobs, js)
}

// advance has the entry due at the first time after now.
func (e *entry) advance(now time.Time) {
	if e.next = e.schedule.Next(now.Add(-e.delay)); !e.next.IsZero() {
		e.next = e.next.Add(e.delay)
	}
}

// next is when the next job is due; zero when none ever is.
func (t *timetable) next() time.Time {
	if len(t.byTime) == 0 {
		return time.Time{}
	}
	return t.byTime[0].next
}

// due calls each for every job that is due at now, with the last of its scheduled times that is, and moves on.
// Times that passed unnoticed since the last call are not lost: decide looks at all of them.
func (t *timetable) due(now time.Time, each func(js *jobState, last time.Time)) {
	for len(t.byTime) > 0 && !t.byTime[0].next.After(now) {
		e := t.byTime[0]
		_, last, _ := e.schedule.Between(e.next.Add(-e.delay-time.Second), now.Add(-e.delay))
		for _, js := range e.jobs {
			each(js, last)
		}
		if e.advance(now); e.next.IsZero() {
			heap.Pop(&t.byTime)
		} else {
			heap.Fix(&t.byTime, 0)
		}
	}
}

// burst is the jobs that will be due at one instant.
type burst struct {
	at      time.Time
	entries []*entry
	jobs    int
}

// bursts are the instants after now, up to horizon, at which jobs are due next.
func (t *timetable) bursts(now, horizon time.Time) []burst {
	var found []burst
	t.walk(0, horizon, func(e *entry) {
		if !e.next.After(now) {
			return
		}
		i := slices.IndexFunc(found, func(b burst) bool { return b.at.Equal(e.next) })
		if i < 0 {
			i = len(found)
			found = append(found, burst{at: e.next})
		}
		found[i].entries = append(found[i].entries, e)
		found[i].jobs += len(e.jobs)
	})
	return found
}

// walk calls each for the entries of the heap from i down that are due up to horizon: no parent is later than
// its children.
func (t *timetable) walk(i int, horizon time.Time, each func(*entry)) {
	if i >= len(t.byTime) || t.byTime[i].next.After(horizon) {
		return
	}
	each(t.byTime[i])
	t.walk(2*i+1, horizon, each)
	t.walk(2*i+2, horizon, each)
}

type entryHeap []*entry

func (h entryHeap) Len() int           { return len(h) }
func (h entryHeap) Less(i, j int) bool { return h[i].next.Before(h[j].next) }
func (h entryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].index, h[j].index = i, j }

func (h *entryHeap) Push(x any) {
	e := x.(*entry) //nolint:forcetypeassert // container/heap's interface
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *entryHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	e.index = -1
	*h = old[:len(old)-1]
	return e
}
