package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// Overview is how all jobs stand at a moment, and the few of them that are worth a look.
type Overview struct {
	At         time.Time    `json:"at"`
	Leader     *leader.Info `json:"leader"` // null when nobody leads
	Jobs       int          `json:"jobs"`   // without those that are retired
	Paused     int          `json:"paused"`
	Invalid    int          `json:"invalid"` // their definition or status cannot be read
	Running    int          `json:"running"` // runs
	Pending    int          `json:"pending"`
	Failing    int          `json:"failing"`      // jobs whose last run failed
	EndedTotal int64        `json:"ended_total"`  // runs that have succeeded, failed or were canceled
	FailedRuns int64        `json:"failed_total"` // and of these, those that have failed

	RunningRuns []RunningRun `json:"running_runs"` // the first few, the oldest first
	NextJobs    []NextJob    `json:"next_jobs"`    // the first few to be due
	FailingJobs []FailingJob `json:"failing_jobs"` // the first few, those with the most failures first
}

// RunningRun is a run that goes on.
type RunningRun struct {
	LiveRun

	Job string `json:"job"`
}

// NextJob is a job that is due.
type NextJob struct {
	Job      string    `json:"job"`
	At       time.Time `json:"at"`
	Schedule string    `json:"schedule"`
	TimeZone string    `json:"time_zone"`
}

// FailingJob is a job whose last run failed.
type FailingJob struct {
	Job      string    `json:"job"`
	Failures int64     `json:"consecutive_failures"`
	At       time.Time `json:"last_finished_at"`
	Error    string    `json:"last_error"`
}

// Overlook counts all jobs and names n of each kind that is worth a look. Of the runs that go on it knows no more than
// their ids: [LookInto] reads the rest.
func Overlook(defs []state.Definition, n int, now time.Time) *Overview {
	o := &Overview{At: now, RunningRuns: []RunningRun{}, NextJobs: []NextJob{}, FailingJobs: []FailingJob{}}
	for i := range defs {
		spec, st := &defs[i].Spec, &defs[i].View.Status
		o.EndedTotal += st.SucceededTotal + st.FailedTotal + st.CanceledTotal
		o.FailedRuns += st.FailedTotal
		o.Running += len(st.Live)
		o.Pending += len(st.Queue)
		for _, id := range st.Live {
			o.RunningRuns = append(o.RunningRuns, RunningRun{Job: spec.Name, LiveRun: LiveRun{ID: id}})
		}
		if spec.Retired {
			continue
		}
		o.Jobs++
		if st.ConsecutiveFailures > 0 {
			o.Failing++
			o.FailingJobs = append(o.FailingJobs, FailingJob{Job: spec.Name, Failures: st.ConsecutiveFailures, At: st.LastFinishedAt, Error: st.LastError})
		}
		switch {
		case defs[i].Broken != nil || defs[i].SpecRev == 0:
			o.Invalid++
		case defs[i].Control.Paused:
			o.Paused++
		case !st.NextRunAt.IsZero():
			o.NextJobs = append(o.NextJobs, NextJob{Job: spec.Name, At: st.NextRunAt, Schedule: spec.Schedule, TimeZone: spec.TimeZone})
		}
	}
	o.RunningRuns = first(o.RunningRuns, n, func(a, b RunningRun) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Job, b.Job)) })
	o.NextJobs = first(o.NextJobs, n, func(a, b NextJob) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Job, b.Job)) })
	o.FailingJobs = first(o.FailingJobs, n, func(a, b FailingJob) int {
		return cmp.Or(cmp.Compare(b.Failures, a.Failures), cmp.Compare(a.Job, b.Job))
	})
	return o
}

func first[T any](all []T, n int, compare func(a, b T) int) []T {
	slices.SortFunc(all, compare)
	return slices.Clip(all[:min(n, len(all))])
}

// LookInto reads how far the runs are that an overview names. One that has ended meanwhile is left out.
func (o *Overview) LookInto(ctx context.Context, store *state.Store) error {
	runs := o.RunningRuns[:0]
	for i := range o.RunningRuns {
		r, err := liveRun(ctx, store, o.RunningRuns[i].Job, o.RunningRuns[i].ID)
		if err != nil {
			return err
		}
		if r != nil {
			runs = append(runs, RunningRun{Job: o.RunningRuns[i].Job, LiveRun: *r})
		}
	}
	o.Running -= len(o.RunningRuns) - len(runs)
	o.RunningRuns = runs
	return nil
}
