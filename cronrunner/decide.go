package cronrunner

import (
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// onTime is how late a scheduled time may be decided and still count as scheduled rather than caught
// up. Beyond it the machine was suspended, the clock was set, or every slot was taken for long.
const onTime = time.Minute

// situation is all that a decision rests on.
type situation struct {
	cursor time.Time // last scheduled time decided
	busy   bool      // a run of the job is running
	queue  int       // runs of the job that are pending
	paused bool
	since  time.Time // when this term began, by this instance's clock
}

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
// none. However many they are, the verdicts are at most three, and one for each that is queued. It has no
// clock and no side effects: what it was given is what the claim compares. When a run is among the
// verdicts it is the last one, and there may be more to decide after it.
func decide(j *job, s situation, now time.Time) []verdict {
	first, last, count := j.schedule.Between(s.cursor, now)
	if count == 0 {
		return nil
	}
	all := verdict{trigger: state.ByCatchUp, first: first, last: last, count: count}
	if s.paused {
		return []verdict{all.not(state.Skipped, state.ReasonPaused)}
	}
	onSchedule := !last.Before(s.since) && now.Sub(last) <= onTime
	if !onSchedule {
		if j.CatchUp.Policy == None {
			return []verdict{all.not(state.Missed, state.ReasonCatchUp)}
		}
		if now.Sub(last) > j.CatchUp.Window {
			return []verdict{all.not(state.Missed, state.ReasonWindow)}
		}
	}

	verdicts, rest := outsideWindow(j, s.cursor, last, now)
	d := due{job: j, situation: s, rest: rest, last: last, onSchedule: onSchedule, now: now}
	switch j.Overlap.Policy {
	case Queue:
		return append(verdicts, d.queued()...)
	case Coalesce:
		return append(verdicts, d.coalesced()...)
	default:
		return append(verdicts, d.skipped()...)
	}
}

// due is the scheduled times in (rest, last], of which there is at least one, to be put through the
// overlap policy.
type due struct {
	situation

	job        *job
	rest, last time.Time
	onSchedule bool // last is
	now        time.Time
}

// skipped is policy skip: the newest runs if the job is idle.
func (d due) skipped() []verdict {
	if d.busy || d.queue > 0 {
		return []verdict{d.all(d.rest).not(state.Skipped, state.ReasonOverlap)}
	}
	verdicts := d.superseded(d.last.Add(-time.Second))
	return append(verdicts, d.verdict(state.Running, d.last, d.last, 1))
}

// queued is policy queue: what fell due in this term is run one by one, in order; of what fell due before,
// the newest.
func (d due) queued() []verdict {
	from := d.last.Add(-time.Second)
	if d.onSchedule {
		from = maxTime(d.rest, maxTime(d.since, d.now.Add(-onTime)).Add(-time.Nanosecond))
	}
	verdicts := d.superseded(from)
	if !d.busy && d.queue == 0 {
		first := d.job.schedule.Next(from)
		return append(verdicts, d.verdict(state.Running, first, first, 1))
	}
	for range d.job.Overlap.Limit - d.queue {
		next := d.job.schedule.Next(from)
		if next.IsZero() || next.After(d.last) {
			break
		}
		verdicts = append(verdicts, d.verdict(state.Pending, next, next, 1))
		from = next
	}
	if left := d.all(from); left.count > 0 {
		verdicts = append(verdicts, left.not(state.Skipped, state.ReasonQueueFull))
	}
	return verdicts
}

// coalesced is policy coalesce: one run for all, or for all that fell due in this term if nothing is to be
// caught up.
func (d due) coalesced() []verdict {
	var verdicts []verdict
	from := d.rest
	if d.job.CatchUp.Policy == None {
		from = maxTime(from, d.since.Add(-time.Nanosecond))
		verdicts = d.superseded(from)
	}
	all := d.all(from)
	v := d.verdict(state.Running, all.first, all.last, all.count)
	if d.busy || d.queue > 0 {
		v.status, v.merge = state.Pending, d.queue > 0
	}
	return append(verdicts, v)
}

// superseded are the times up to and including upTo, which are not run since newer ones are.
func (d due) superseded(upTo time.Time) []verdict {
	first, last, count := d.job.schedule.Between(d.rest, upTo)
	if count == 0 {
		return nil
	}
	reason := state.ReasonSuperseded
	if d.job.CatchUp.Policy == None {
		reason = state.ReasonCatchUp
	}
	return []verdict{d.verdict(state.Missed, first, last, count).not(state.Missed, reason)}
}

// all is the times after from, as one.
func (d due) all(from time.Time) verdict {
	first, last, count := d.job.schedule.Between(from, d.last)
	return d.verdict("", first, last, count)
}

func (d due) verdict(status state.RunStatus, first, last time.Time, count int64) verdict {
	v := verdict{status: status, trigger: state.ByCatchUp, first: first, last: last, count: count}
	if d.onSchedule && !first.Before(d.since) && d.now.Sub(first) <= onTime {
		v.trigger = state.BySchedule
	}
	return v
}

// outsideWindow is the verdict on the times before newest that are older than the catch-up window, and
// the instant after which the others lie.
func outsideWindow(j *job, cursor, newest, now time.Time) (verdicts []verdict, rest time.Time) {
	rest = maxTime(cursor, minTime(now.Add(-j.CatchUp.Window), newest.Add(-time.Second)))
	if first, last, count := j.schedule.Between(cursor, rest); count > 0 {
		v := verdict{trigger: state.ByCatchUp, first: first, last: last, count: count}
		verdicts = append(verdicts, v.not(state.Missed, state.ReasonWindow))
	}
	return verdicts, rest
}

func (v verdict) not(status state.RunStatus, reason string) verdict {
	v.status, v.reason = status, reason
	return v
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
	r.LatenessMS = max(now.Sub(r.ScheduledAt).Milliseconds(), 0)
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
