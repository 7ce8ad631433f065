package cronrunner

import (
	"math"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// onTime is how late a scheduled time may be decided and still count as scheduled rather than caught
// up. Beyond it the machine was suspended, the clock was set, or every slot was taken for long.
const onTime = time.Minute

// situation is all that a decision rests on. Its times, and now, are of the job's own clock.
type situation struct {
	cursor time.Time // last scheduled time decided
	room   int       // how many further runs of the job may run now; none when it is busy
	queue  int       // runs of the job that are pending
	left   int64     // how many runs its schedule may still yield
	paused bool
	since  time.Time // when this term began, by this instance's clock
	// resumed is until when the job was paused, if it was.
	resumed time.Time
}

// unlimited is a job without MaxRuns.
const unlimited = math.MaxInt64

// verdict is what becomes of one scheduled time, or of a range of them that share their fate.
type verdict struct {
	status  state.RunStatus // Running, Pending, Skipped or Missed
	merge   bool            // into the run that is pending already
	trigger state.Trigger
	reason  string
	first   time.Time
	last    time.Time // equal to first unless count > 1
	count   int64
}

// decide says what becomes of the scheduled times in (cursor, now], oldest first; nothing when there is
// none, when the job is paused (what falls due meanwhile is decided when it is resumed), and when its schedule
// is exhausted. However many they are, the verdicts are at most enough and three: what comes after them is decided
// in the next look, as is what comes after a run, which is the last of the verdicts. It has no clock and no side
// effects: what it was given is what the claim compares.
func decide(j *job, s situation, now time.Time) []verdict {
	if s.paused || s.left <= 0 {
		return nil
	}
	onTimeFrom := maxTime(s.since, now.Add(-onTime))
	late := minTime(onTimeFrom.Add(-time.Nanosecond), now) // a term's begin is later when the clock was set back
	d := decision{situation: s, job: j, now: now, onTimeFrom: onTimeFrom, late: late}
	if mutateCatchUp && d.rest(late).count > 0 {
		d.cursor = d.rest(late).first
	}
	d.passedWhilePaused()
	d.notCaughtUp()
	switch {
	case j.Overlap.Policy == Coalesce:
		d.coalesce()
	case j.CatchUp.Policy == All:
		if d.catchUpAll() {
			d.overlap()
		}
	default:
		d.overlap()
	}
	return d.verdicts
}

// decision is a decision in the making: it has the verdicts up to the situation's cursor, which moves with
// them, as do the queue and the runs that are left.
type decision struct {
	situation

	job        *job
	now        time.Time
	onTimeFrom time.Time // times from here on are on schedule, earlier ones are caught up
	late       time.Time // the last instant before that
	verdicts   []verdict
}

// rest is the undecided times up to upTo.
func (d *decision) rest(upTo time.Time) verdict {
	first, last, count := d.job.schedule.Between(d.cursor, upTo)
	return d.verdict(first, last, count)
}

func (d *decision) verdict(first, last time.Time, count int64) verdict {
	v := verdict{trigger: state.ByCatchUp, first: first, last: last, count: count}
	if !first.Before(d.onTimeFrom) {
		v.trigger = state.BySchedule
	}
	return v
}

// not decides that the times of v, if there are any, are not run.
func (d *decision) not(v verdict, status state.RunStatus, reason string) {
	if v.count > 0 {
		v.status, v.reason = status, reason
		d.verdicts = append(d.verdicts, v)
		d.cursor = v.last
	}
}

// enough verdicts are left to the next look when so many runs are to wait: each is written by itself.
const enough = 8

// run decides that v is one run, which runs now or waits. It reports whether more can be decided now.
func (d *decision) run(v verdict, status state.RunStatus) (more bool) {
	v.status = status
	d.verdicts = append(d.verdicts, v)
	d.cursor = v.last
	d.left--
	if status == state.Pending {
		d.queue++
	}
	return status == state.Pending && d.left > 0 && len(d.verdicts) < enough
}

// passedWhilePaused skips what fell due before the job was resumed.
func (d *decision) passedWhilePaused() {
	d.not(d.rest(minTime(d.resumed, d.now)), state.Skipped, state.ReasonPaused)
}

// notCaughtUp is what is too late for the catch-up policy.
func (d *decision) notCaughtUp() {
	if d.job.CatchUp.Policy == None {
		d.not(d.rest(d.late), state.Missed, state.ReasonCatchUp)
		return
	}
	tooOld := d.now.Add(-d.job.CatchUp.Window).Add(-time.Nanosecond)
	d.not(d.rest(minTime(d.late, tooOld)), state.Missed, state.ReasonWindow)
}

// catchUpAll has the newest of what is late run, up to the limit, one after the other and the oldest first: the
// first at once if the job is idle, the others when it is. It reports whether more can be decided now.
func (d *decision) catchUpAll() (more bool) {
	limit := d.job.CatchUp.Limit
	if d.job.Overlap.Policy == Queue { // what the queue has no room for would be skipped, and be the newest
		limit = min(limit, max(d.job.Overlap.Limit-d.queue+min(d.room, 1), 0))
	}
	d.not(d.rest(d.job.schedule.beforeLast(d.cursor, d.late, int64(limit))), state.Missed, state.ReasonLimit)
	for {
		v := d.rest(d.late)
		if v.count == 0 {
			return true
		}
		status := state.Pending
		if d.room > 0 && d.queue == 0 {
			status = state.Running
		}
		if !d.run(d.verdict(v.first, v.first, 1), status) {
			return false
		}
	}
}

// overlap puts what is due through the overlap policy: under queue and allow each time that is on schedule,
// otherwise the newest. Older ones are superseded by it.
func (d *decision) overlap() {
	all := d.rest(d.now)
	superseded := all.last.Add(-time.Second)
	if d.job.Overlap.eachRuns() && !all.last.Before(d.onTimeFrom) {
		superseded = d.late
	}
	for more := true; more && all.count > 0; all = d.rest(d.now) {
		status, reason := d.job.Overlap.admit(d.room, d.queue)
		if status == state.Skipped {
			d.not(all, status, reason)
			return
		}
		d.not(d.rest(superseded), state.Missed, state.ReasonSuperseded)
		first := d.rest(d.now).first
		more = d.run(d.verdict(first, first, 1), status)
	}
}

// coalesce has one run stand for all that is due, or for it too if one waits already.
func (d *decision) coalesce() {
	if v := d.rest(d.now); v.count > 0 {
		v.merge = d.queue > 0
		status, _ := d.job.Overlap.admit(d.room, 0)
		if v.merge {
			status = state.Pending
		}
		d.run(v, status)
	}
}

// eachRuns tells the policies under which times that fell due together are a run each.
func (o Overlap) eachRuns() bool { return o.Policy == Queue || o.Policy == Allow }

// limit is how many runs of the job may run at once.
func (o Overlap) limit() int {
	if o.Policy == Allow {
		return o.Limit
	}
	return 1
}

// admit says what becomes of one more run of a job, of which room further ones may run now and queue wait.
func (o Overlap) admit(room, queue int) (status state.RunStatus, reason string) {
	switch {
	case room > 0 && queue == 0:
		return state.Running, ""
	case o.Policy == Replace, o.Policy == Queue && queue < o.Limit, o.Policy == Coalesce && queue == 0:
		return state.Pending, ""
	case o.Policy == Queue:
		return state.Skipped, state.ReasonQueueFull
	case o.Policy == Coalesce:
		return state.Skipped, state.ReasonCoalesced
	default:
		return state.Skipped, state.ReasonOverlap
	}
}

// record is the run record that a verdict makes.
func (v verdict) record(j *job, instance string, term int64, now time.Time) state.Run {
	r := state.Run{
		Job:         j.Name,
		ID:          state.RunID(v.first),
		Trigger:     v.trigger,
		ScheduledAt: v.first,
		Status:      v.status,
		Reason:      v.reason,
		Instance:    instance,
		Term:        term,
	}
	if v.count > 1 {
		r.Count, r.Until = v.count, v.last
	}
	switch v.status {
	case state.Running:
		return begun(r, j, instance, term, now)
	case state.Pending:
	default:
		r.FinishedAt = now
	}
	return r
}

// begun is the record of a run whose first attempt begins.
func begun(r state.Run, j *job, instance string, term int64, now time.Time) state.Run {
	r.Status, r.Attempt, r.StartedAt = state.Running, 1, now
	r.Instance, r.Term = instance, term
	r.LatenessMS = j.lateness(&r, now).Milliseconds()
	r.TimeoutMS = j.Timeout.Milliseconds()
	return r
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
