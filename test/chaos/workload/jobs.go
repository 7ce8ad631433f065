package workload

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/chaos/checker"
)

// Job is a job and what it does.
type Job struct {
	cronrunner.Job

	Every int // seconds between its scheduled times, a divisor of 60
	Work  Work
}

// Work is what a run does.
type Work struct {
	Min, Max    time.Duration // how long it takes
	Fails       int           // of a hundred attempts
	Panics      int           // of a hundred attempts; a command fails instead
	Checkpoints bool
	Writes      bool          // to the fenced target
	Lag         time.Duration // how long it takes to stop when it is told to
	Stubborn    bool          // it does not hear that it is told to stop
	Silent      bool          // of a burst: it says no more than that it begins and ends
}

const (
	second = time.Second
	milli  = time.Millisecond
)

// Code are the jobs of the instances that use the library: every policy, durations shorter and longer than the period,
// and a burst of many that are due in the same second. Which is one of the sets of jobs.
func Code(end time.Time, which string, burst int) []Job {
	retry := cronrunner.Retry{MaxAttempts: 3, Initial: 100 * milli, Max: second}
	all := cronrunner.CatchUp{Policy: cronrunner.All, Limit: 5}
	none := cronrunner.CatchUp{Policy: cronrunner.None}
	jobs := []Job{
		{Job: cronrunner.Job{Name: "short"}, Every: 1, Work: Work{Max: 300 * milli, Writes: true}},
		{Job: cronrunner.Job{Name: "long"}, Every: 1, Work: Work{Min: 2 * second, Max: 5 * second, Checkpoints: true, Writes: true}},
		{Job: cronrunner.Job{Name: "lazy"}, Every: 2, Work: Work{Min: 3 * second, Max: 5 * second, Lag: 300 * milli, Writes: true}},
		{Job: cronrunner.Job{Name: "stubborn"}, Every: 2, Work: Work{Min: 3 * second, Max: 9 * second, Stubborn: true, Checkpoints: true, Writes: true}},
		{
			Job:   cronrunner.Job{Name: "queue", Overlap: cronrunner.Overlap{Policy: cronrunner.Queue, Limit: 5}, CatchUp: all, Retry: retry},
			Every: 2, Work: Work{Max: 3 * second, Fails: 20, Writes: true},
		},
		{
			Job:   cronrunner.Job{Name: "coalesce", Overlap: cronrunner.Overlap{Policy: cronrunner.Coalesce}},
			Every: 1, Work: Work{Min: 500 * milli, Max: 2 * second, Panics: 10},
		},
		{
			Job:   cronrunner.Job{Name: "replace", Overlap: cronrunner.Overlap{Policy: cronrunner.Replace}, Retry: retry},
			Every: 3, Work: Work{Min: second, Max: 6 * second, Fails: 10, Checkpoints: true, Writes: true},
		},
		{
			Job:   cronrunner.Job{Name: "allow", Overlap: cronrunner.Overlap{Policy: cronrunner.Allow, Limit: 3}},
			Every: 1, Work: Work{Max: 4 * second, Checkpoints: true, Writes: true},
		},
		{
			Job:   cronrunner.Job{Name: "once", CatchUp: none, Recovery: cronrunner.Recovery{Policy: cronrunner.Fail}},
			Every: 1, Work: Work{Max: 2 * second, Writes: true},
		},
		{
			Job:   cronrunner.Job{Name: "allow-once", Overlap: cronrunner.Overlap{Policy: cronrunner.Allow, Limit: 2}, Recovery: cronrunner.Recovery{Policy: cronrunner.Fail}},
			Every: 2, Work: Work{Max: 4 * second, Panics: 10},
		},
		{
			Job:   cronrunner.Job{Name: "catch-up", CatchUp: all, Retry: retry},
			Every: 3, Work: Work{Max: 3 * second, Fails: 20, Panics: 10, Writes: true},
		},
		{
			Job:   cronrunner.Job{Name: "carried", Checkpoint: state.PerJob},
			Every: 2, Work: Work{Min: second, Max: 3 * second, Fails: 40, Checkpoints: true},
		},
		{Job: cronrunner.Job{Name: "limit", Timeout: second, Retry: retry}, Every: 3, Work: Work{Max: 2 * second, Writes: true}},
		{Job: cronrunner.Job{Name: "few", MaxRuns: 12}, Every: 1, Work: Work{Max: 500 * milli}},
		{Job: cronrunner.Job{Name: "jitter", Jitter: 3 * second}, Every: 2, Work: Work{Max: second}},
	}
	if which == BurstOnly {
		jobs = nil
	}
	for i := range burst {
		jobs = append(jobs, Job{Job: cronrunner.Job{Name: fmt.Sprintf("burst-%03d", i)}, Every: 10, Work: Work{Max: 200 * milli, Silent: true}})
	}
	jobs = settled(jobs, end)
	if which == HeldToo {
		jobs = append(jobs, held(end))
	}
	return jobs
}

// held is a job that goes on for long, under a lock that outlasts much and leaves it next to no grace.
func held(end time.Time) Job {
	jobs := settled([]Job{{Job: cronrunner.Job{Name: "held"}, Every: 10, Work: Work{Min: 40 * second, Max: 40 * second, Writes: true}}}, end)
	jobs[0].LockTTL, jobs[0].Grace = 12*second, 100*milli
	return jobs[0]
}

// File are the jobs of the instances of the command, which run commands.
func File(end time.Time) []Job {
	jobs := []Job{
		{Job: cronrunner.Job{Name: "cmd-long"}, Every: 1, Work: Work{Min: second, Max: 5 * second, Checkpoints: true, Writes: true}},
		{
			Job:   cronrunner.Job{Name: "cmd-queue", Overlap: cronrunner.Overlap{Policy: cronrunner.Queue, Limit: 3}, Retry: cronrunner.Retry{MaxAttempts: 3, Initial: 100 * milli, Max: second}},
			Every: 3, Work: Work{Max: 3 * second, Fails: 20, Writes: true},
		},
		{
			Job:   cronrunner.Job{Name: "cmd-once", Recovery: cronrunner.Recovery{Policy: cronrunner.Fail}, CatchUp: cronrunner.CatchUp{Policy: cronrunner.None}},
			Every: 2, Work: Work{Max: 2 * second, Lag: 200 * milli},
		},
		{
			Job:   cronrunner.Job{Name: "cmd-stubborn"},
			Every: 5, Work: Work{Min: second, Max: 6 * second, Stubborn: true, Checkpoints: true, Writes: true},
		},
	}
	return settled(jobs, end)
}

// settled gives the jobs what they have in common.
func settled(jobs []Job, end time.Time) []Job {
	for i := range jobs {
		j := &jobs[i]
		j.Schedule, j.End, j.LockTTL, j.Grace = "* * * * * *", end, cronrunner.MinLockTTL, 500*milli
		if j.Every > 1 {
			j.Schedule = fmt.Sprintf("*/%d * * * * *", j.Every)
		}
		j.Job = j.WithDefaults()
	}
	return jobs
}

// Checked is the job as the checker knows it: its times are those after from.
func (j *Job) Checked(from time.Time) checker.Job {
	return checker.Job{
		Name: j.Name, Every: time.Duration(j.Every) * time.Second, From: from, To: j.End.Truncate(time.Duration(j.Every) * time.Second),
		MaxRuns: j.MaxRuns, Shared: j.Overlap.Policy == cronrunner.Allow, PerJob: j.Checkpoint == state.PerJob,
		Grace: j.Grace, LockTTL: j.LockTTL,
	}
}

// JobsFile is the jobs as a jobs file, with one command for all.
func JobsFile(jobs []Job, command ...string) ([]byte, error) {
	type object = map[string]any
	all := make(object)
	for i := range jobs {
		j := &jobs[i]
		fields := object{
			"schedule": j.Schedule, "end": j.End.Format(time.RFC3339), "command": command,
			"lock_ttl": j.LockTTL.String(), "grace": j.Grace.String(), "timeout": j.Timeout.String(),
			"overlap": object{"policy": j.Overlap.Policy}, "catch_up": object{"policy": j.CatchUp.Policy}, "recovery": j.Recovery.Policy,
		}
		if j.Overlap.Limit > 0 {
			fields["overlap"] = object{"policy": j.Overlap.Policy, "limit": j.Overlap.Limit}
		}
		if j.Retry.MaxAttempts > 1 {
			fields["retry"] = object{"max_attempts": j.Retry.MaxAttempts, "initial": j.Retry.Initial.String(), "max": j.Retry.Max.String()}
		}
		all[j.Name] = fields
	}
	return json.Marshal(object{"jobs": all}) // JSON is YAML too
}
