package checker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/tally"
)

var epoch = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

const ms = int64(time.Millisecond)

// world makes up a history that is right.
type world struct {
	Input

	revision int64
	term     int64
	mono     int64 // since epoch
}

func newWorld(jobs ...Job) *world {
	w := &world{revision: 100, term: 7}
	for _, j := range jobs {
		if j.Every == 0 {
			j.Every = time.Second
		}
		j.From, j.LockTTL, j.Grace = epoch, 3*time.Second, 500*time.Millisecond
		w.Jobs = append(w.Jobs, j)
	}
	w.Records = make(map[string][]Record)
	return w
}

func (w *world) rev() int64 { w.revision++; return w.revision }

// at moves the clock on.
func (w *world) at(offset time.Duration) { w.mono = max(w.mono, int64(offset)) }

func (w *world) event(e Event) {
	w.mono += ms
	e.Mono, e.Wall = w.mono, epoch.Add(time.Duration(w.mono))
	w.Events = append(w.Events, e)
}

// trial is an attempt as it is made up.
type trial struct {
	Event

	w *world
}

func (w *world) begin(job string, at time.Time, n int, instance string, restored int64) trial {
	w.at(at.Sub(epoch))
	t := trial{w: w, Event: Event{Job: job, Run: state.RunID(at), Attempt: n, Token: w.rev(), Instance: instance}}
	t.say(Event{Kind: Start, Value: restored})
	return t
}

func (t trial) say(e Event) {
	e.Job, e.Run, e.Attempt, e.Token, e.Instance = t.Job, t.Run, t.Attempt, t.Token, t.Instance
	t.w.event(e)
}

func (t trial) save(value int64) {
	t.say(Event{Kind: Asking, Value: value})
	called := t.w.mono
	t.say(Event{Kind: Saved, Value: value, Called: called})
}

func (t trial) write() { t.say(Event{Kind: Write, Accepted: true}) }

func (t trial) end(outcome string) { t.say(Event{Kind: End, Outcome: outcome}) }

// record writes the record of the run whose last attempt t is.
func (t trial) record(at time.Time, status state.RunStatus, reason string, retries, recoveries int) {
	t.w.put(state.Run{
		Job: t.Job, ID: t.Run, Trigger: state.BySchedule, ScheduledAt: at, Status: status, Reason: reason, Attempt: t.Attempt,
		FencingToken: t.Token, Term: t.w.term, Retries: retries, Recoveries: recoveries, FinishedAt: at, DurationMS: 5,
	})
}

// not writes that count times from at on were not run.
func (w *world) not(job string, at time.Time, status state.RunStatus, count int64) {
	r := state.Run{Job: job, ID: state.RunID(at), Trigger: state.BySchedule, ScheduledAt: at, Status: status, Reason: "overlap", Term: w.term, FinishedAt: at}
	if count > 1 {
		r.Count, r.Until = count, at.Add(time.Duration(count-1)*w.every(job))
	}
	w.put(r)
}

func (w *world) every(job string) time.Duration {
	for _, j := range w.Jobs {
		if j.Name == job {
			return j.Every
		}
	}
	panic(job)
}

func (w *world) put(r state.Run) {
	rev := w.rev()
	record := Record{Run: r, Created: rev, Modified: rev}
	if r.Attempt > 0 {
		record.Created = r.FencingToken
	}
	w.Records[r.Job] = append(w.Records[r.Job], record)
}

// done counts, and ends the interval of a job after so many times.
func (w *world) done(job string, times int64) {
	if w.Statuses == nil {
		w.Statuses = make(map[string]state.JobStatus)
	}
	var runs []state.Run
	for _, r := range w.Records[job] {
		runs = append(runs, r.Run)
	}
	w.Statuses[job] = tally.Count(runs)
	for i := range w.Jobs {
		if w.Jobs[i].Name == job {
			w.Jobs[i].To = epoch.Add(time.Duration(times) * w.Jobs[i].Every)
		}
	}
}

// sample is a history with a bit of everything: a run that is lost and resumed, one that fails and is tried again, and
// times that were skipped and missed.
func sample() *world {
	w := newWorld(Job{Name: "a", Every: 10 * time.Second})
	at := func(n int) time.Time { return epoch.Add(time.Duration(n) * 10 * time.Second) }

	one := w.begin("a", at(1), 1, "i1", 0)
	one.write()
	one.save(1)
	one.save(2)
	one.say(Event{Kind: Asking, Value: 3}) // nobody knows
	w.at(15 * time.Second)
	w.term = w.rev()
	two := w.begin("a", at(1), 2, "i2", 3)
	two.save(4)
	two.write()
	two.end(OK)
	two.record(at(1), state.Succeeded, "", 0, 1)

	w.not("a", at(2), state.Skipped, 1)

	three := w.begin("a", at(3), 1, "i2", 0)
	three.say(Event{Kind: Told})
	three.end(Failed)
	four := w.begin("a", at(3), 2, "i2", 0)
	four.write()
	four.end(OK)
	four.record(at(3), state.Succeeded, "", 1, 0)

	w.not("a", at(4), state.Missed, 3)

	five := w.begin("a", at(7), 1, "i2", 0)
	five.end(Failed)
	five.record(at(7), state.Failed, "", 0, 0)
	w.done("a", 7)
	return w
}

func TestAHistoryThatIsRight(t *testing.T) {
	t.Parallel()
	require.Empty(t, Check(sample().Input))
}

// find is the first event that matches.
func (w *world) find(what string, is func(*Event) bool) *Event {
	for i := range w.Events {
		if is(&w.Events[i]) {
			return &w.Events[i]
		}
	}
	panic("no event: " + what)
}

func (w *world) start(run time.Time, attempt int) *Event {
	return w.find(fmt.Sprint(run, attempt), func(e *Event) bool {
		return e.Kind == Start && e.Run == state.RunID(run) && e.Attempt == attempt
	})
}
