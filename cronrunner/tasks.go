package cronrunner

import (
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// task is the next thing to be done for a job; without op there is nothing.
type task struct {
	op     func() effect
	claims bool // it claims a run, in a slot
	ahead  bool // it claims a run that is not due yet, if a slot is free
}

// nextTask is what a job needs that is known and has no lost runs: first what waits, then what is due, then
// what people ask for.
func (t *term) nextTask(js *jobState, now time.Time) task {
	j, def := js.job, js.def
	st := &def.View.Status
	room := max(j.Overlap.limit()-len(st.Live), 0)
	if js.locked || time.Now().Before(js.lockedUntil) {
		room = 0
	}
	if next := t.nextCancel(js); next.op != nil {
		return next
	}
	if next := t.nextQueued(js, room); next.op != nil {
		return next
	}
	if next := t.nextDue(js, room, now); next.op != nil {
		return next
	}
	return t.nextAsked(js, room, now)
}

// nextQueued is what is to be done for the runs that wait.
func (t *term) nextQueued(js *jobState, room int) task {
	j, def := js.job, js.def
	queue := def.View.Status.Queue
	if len(queue) == 0 || def.Control.Paused {
		return task{}
	}
	id := queue[0]
	switch {
	case j.Overlap.Policy == Replace && len(queue) > 1:
		return task{op: func() effect { return t.replaceQueued(def, id) }}
	case room > 0:
		return task{claims: true, op: func() effect { return t.claimQueued(j, def, id) }}
	case j.Overlap.Policy == Replace:
		return t.replaceRunning(js)
	}
	return task{}
}

// nextDue is what is to be done for the scheduled times.
func (t *term) nextDue(js *jobState, room int, now time.Time) task {
	j, def := js.job, js.def
	verdicts := decide(j, t.situationOf(js, room), j.clock(now))
	if len(verdicts) == 0 {
		return task{}
	}
	v, last := verdicts[0], len(verdicts)-1
	js.apart = js.apart && last > 0
	switch {
	case verdicts[last].status == state.Running && !js.apart:
		return task{claims: true, op: func() effect { return t.claim(j, def, verdicts, t.now()) }}
	case v.merge:
		return task{op: func() effect { return t.merge(j, def, v) }}
	default:
		return task{op: func() effect { return t.recordVerdict(j, def, v) }}
	}
}

// situationOf is what a decision about a job rests on, by the job's own clock.
func (t *term) situationOf(js *jobState, room int) situation {
	j, def := js.job, &js.def
	st := &def.View.Status
	return situation{
		cursor:  maxTime(st.Cursor, js.floor),
		room:    room,
		queue:   len(st.Queue),
		left:    j.runsLeft(st),
		paused:  def.Control.Paused,
		since:   j.clock(t.since),
		resumed: j.clock(js.resumed),
	}
}
