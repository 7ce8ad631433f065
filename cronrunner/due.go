package cronrunner

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// A job is due its delay after its scheduled times. It lives by a clock that is so much behind: at wall time
// t, what was scheduled up to t minus the delay is to be decided. The scheduled times themselves, and with
// them the names of the runs, are those of the schedule, so that another jitter makes no run twice.

// delayOf is a job's part of the jitter: the same at every instance, and after every failover, since it
// follows from the name.
func delayOf(name string, jitter time.Duration) time.Duration {
	seconds := int64(jitter / time.Second)
	if seconds <= 0 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	// FNV's low bits follow the last bytes closely; names such as job1, job2 are to be spread too. These are
	// steps of MurmurHash3's finaliser.
	sum := h.Sum32()
	sum ^= sum >> 16
	sum *= 0x85ebca6b
	sum ^= sum >> 13
	return time.Duration(int64(sum)%seconds) * time.Second
}

// clock is the job's own time at wall time t.
func (j *job) clock(t time.Time) time.Time { return t.Add(-j.delay) }

// dueAt is the wall time at which a scheduled time is due; zero for none.
func (j *job) dueAt(scheduled time.Time) time.Time {
	if scheduled.IsZero() {
		return time.Time{}
	}
	return scheduled.Add(j.delay)
}

// nextDue is the wall time at which the job is due after a decision: the first scheduled time that is after
// decided and in the future. It is zero if there is none, since its schedule has ended or yields no more runs.
func (j *job) nextDue(now, decided time.Time, left int64) time.Time {
	if left <= 0 {
		return time.Time{}
	}
	return j.dueAt(j.schedule.Next(maxTime(j.clock(now), decided)))
}

// lateness is how long after it was due, or asked for, a run began.
func (j *job) lateness(r *state.Run, began time.Time) time.Duration {
	switch r.Trigger {
	case state.BySchedule, state.ByCatchUp:
		return max(began.Sub(j.dueAt(r.ScheduledAt)), 0)
	case state.ByHand:
		return max(began.Sub(r.ScheduledAt), 0)
	case state.ByRetry, state.ByBackfill:
	}
	return 0 // they are late on purpose
}

// scheduleKey is the same for jobs that are due at the same instants.
func (j *job) scheduleKey() string {
	return fmt.Sprintf("%s %s %d %d %d", j.schedule.Zone(), j.schedule.String(), j.Start.Unix(), j.End.Unix(), j.delay)
}

// runsLeft is how many runs the job's schedule may still yield.
func (j *job) runsLeft(st *state.JobStatus) int64 {
	return runsLeft(j.MaxRuns, st)
}

// RunsLeft is how many runs a job's schedule may still yield; math.MaxInt64 without a limit.
func RunsLeft(spec *state.Spec, status *state.JobStatus) int64 {
	return runsLeft(spec.MaxRuns, status)
}

func runsLeft(maxRuns int64, status *state.JobStatus) int64 {
	if maxRuns == 0 {
		return unlimited
	}
	return max(maxRuns-status.ScheduledRunsTotal, 0)
}

// DueTimes is the schedule of the instants at which a job is due, as its spec tells: its scheduled times, with
// its part of the jitter. It is for looking ahead; how many runs the job may still have it does not know.
func DueTimes(spec *state.Spec) (*Schedule, error) {
	s, err := ParseSchedule(spec.Schedule, spec.TimeZone)
	if err != nil {
		return nil, err
	}
	s = s.Within(spec.Start, spec.End)
	if by := int64(time.Duration(spec.Delay) / time.Second); by > 0 {
		delayed := *s
		delayed.plan = delayedPlan{s.plan, by}
		s = &delayed
	}
	return s, nil
}

// DueTimes is the schedule of the instants at which the job would be due; see the function of that name. Its
// error is ErrBadJob.
func (j Job) DueTimes() (*Schedule, error) {
	compiled, err := j.compile()
	if err != nil {
		return nil, err
	}
	spec := specOf(compiled)
	return DueTimes(&spec)
}

// delayedPlan is due some seconds after the times of another.
type delayedPlan struct {
	plan

	by int64
}

func (d delayedPlan) next(after int64) int64 {
	if next := d.plan.next(max(after-d.by, minUnix)); next <= maxUnix-d.by {
		return next + d.by
	}
	return never
}

func (d delayedPlan) between(after, upTo int64) (first, last, count int64) {
	first, last, count = d.plan.between(max(after-d.by, minUnix), max(upTo-d.by, minUnix))
	return first + d.by, last + d.by, count
}
