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

	verdicts := older(j, s.cursor, last, now)
	newest := verdict{status: state.Running, trigger: state.ByCatchUp, first: last, last: last, count: 1}
	if onSchedule {
		newest.trigger = state.BySchedule
	}
	if s.busy {
		newest = newest.not(state.Skipped, state.ReasonOverlap)
	}
	return append(verdicts, newest)
}

// older are the verdicts on the times in (cursor, newest): none of them is run, since a newer one is
// there. Those outside the window say so.
func older(j *job, cursor, newest, now time.Time) []verdict {
	var verdicts []verdict
	upTo := newest.Add(-time.Second)
	edge := now.Add(-j.CatchUp.Window)
	if first, last, n := j.schedule.Between(cursor, minTime(edge, upTo)); n > 0 {
		v := verdict{trigger: state.ByCatchUp, first: first, last: last, count: n}
		verdicts = append(verdicts, v.not(state.Missed, state.ReasonWindow))
	}
	if first, last, n := j.schedule.Between(maxTime(edge, cursor), upTo); n > 0 {
		v := verdict{trigger: state.ByCatchUp, first: first, last: last, count: n}
		reason := state.ReasonSuperseded
		if j.CatchUp.Policy == None {
			reason = state.ReasonCatchUp
		}
		verdicts = append(verdicts, v.not(state.Missed, reason))
	}
	return verdicts
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
