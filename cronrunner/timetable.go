package cronrunner

import (
	"container/heap"
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
	index    int // in byTime; -1 when the schedule is exhausted
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

// due calls each for every job that is due at now, and moves on. Times that passed unnoticed since the
// last call are not lost: decide looks at all of them.
func (t *timetable) due(now time.Time, each func(*jobState)) {
	for len(t.byTime) > 0 && !t.byTime[0].next.After(now) {
		e := t.byTime[0]
		for _, js := range e.jobs {
			each(js)
		}
		if e.advance(now); e.next.IsZero() {
			heap.Pop(&t.byTime)
		} else {
			heap.Fix(&t.byTime, 0)
		}
	}
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
