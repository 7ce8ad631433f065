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
	busy   bool      // a run of the job is pending or running
	paused bool
	since  time.Time // when this term began, by this instance's clock
}

// verdict is what becomes of one scheduled time, or of a range of them that are all not run.
type verdict struct {
	status  state.RunStatus // Running, Skipped or Missed
	trigger state.Trigger
	reason  string
	first   time.Time
	last    time.Time // equal to first unless count > 1
	count   int64
}

// decide says what becomes of the scheduled times in (cursor, now], oldest first; nothing when there is
// none. However many they are, the verdicts are at most three. It has no clock and no side effects:
// what it was given is what the claim compares.
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
	if s.busy {
		first, last, count := j.schedule.Between(rest, last)
		v := verdict{trigger: state.BySchedule, first: first, last: last, count: count}
		if !onSchedule || count > 1 {
			v.trigger = state.ByCatchUp
		}
		return append(verdicts, v.not(state.Skipped, state.ReasonOverlap))
	}
	if first, last, count := j.schedule.Between(rest, last.Add(-time.Second)); count > 0 {
		v := verdict{trigger: state.ByCatchUp, first: first, last: last, count: count}
		reason := state.ReasonSuperseded
		if j.CatchUp.Policy == None {
			reason = state.ReasonCatchUp
		}
		verdicts = append(verdicts, v.not(state.Missed, reason))
	}
	newest := verdict{status: state.Running, trigger: state.ByCatchUp, first: last, last: last, count: 1}
	if onSchedule {
		newest.trigger = state.BySchedule
	}
	return append(verdicts, newest)
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
	if v.status == state.Running {
		r.Attempt = 1
		r.StartedAt = now
		r.LatenessMS = max(now.Sub(v.first).Milliseconds(), 0)
		r.TimeoutMS = j.Timeout.Milliseconds()
	} else {
		r.FinishedAt = now
	}
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
