package state

import (
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// JobStatus is where a job stands: how far its schedule was decided, what runs, and what ran so far.
// Its methods return the next status and change nothing; every transaction writes a run's record and
// the status that accounts for it together, so the counters always equal what the records say.
type JobStatus struct {
	UID    string    `json:"uid"`    // of the spec that it belongs to
	Cursor time.Time `json:"cursor"` // last scheduled time decided

	Live    []string `json:"live,omitempty"`  // ids of the runs that are running
	Queue   []string `json:"queue,omitempty"` // ids of the runs that are pending, the next one first
	Running int      `json:"running,omitempty"`
	Pending int      `json:"pending,omitempty"`

	LastRunID       string    `json:"last_run_id,omitempty"`
	LastScheduledAt time.Time `json:"last_scheduled_at,omitzero"`
	LastStartedAt   time.Time `json:"last_started_at,omitzero"`
	LastFinishedAt  time.Time `json:"last_finished_at,omitzero"`
	LastDurationMS  int64     `json:"last_duration_ms,omitempty"`
	LastStatus      RunStatus `json:"last_status,omitempty"`
	LastError       string    `json:"last_error,omitempty"`
	LastSuccessAt   time.Time `json:"last_success_at,omitzero"`
	NextRunAt       time.Time `json:"next_run_at,omitzero"`

	SucceededTotal      int64            `json:"succeeded_total,omitempty"`
	FailedTotal         int64            `json:"failed_total,omitempty"`
	CanceledTotal       int64            `json:"canceled_total,omitempty"`
	ScheduledRunsTotal  int64            `json:"scheduled_runs_total,omitempty"` // of the schedule, not asked for by people; with those that wait
	SkippedTotal        int64            `json:"skipped_total,omitempty"`
	SkippedByReason     map[string]int64 `json:"skipped_by_reason,omitempty"`
	MissedTotal         int64            `json:"missed_total,omitempty"`
	MissedByReason      map[string]int64 `json:"missed_by_reason,omitempty"`
	RetriedTotal        int64            `json:"retried_total,omitempty"`
	RecoveredTotal      int64            `json:"recovered_total,omitempty"`
	ConsecutiveFailures int64            `json:"consecutive_failures,omitempty"`
	MeanDurationMS      float64          `json:"mean_duration_ms,omitempty"`
	MaxDurationMS       int64            `json:"max_duration_ms,omitempty"`

	Alerting []Incident `json:"alerting,omitempty"` // mostly none; in the order in which they began
}

// encode renders the status, as encoding/json would.
func (s *JobStatus) encode() []byte {
	o := newObject(statusSize)
	o.text("uid", s.UID)
	o.time("cursor", s.Cursor)
	o.someTexts("live", s.Live)
	o.someTexts("queue", s.Queue)
	o.someInt("running", int64(s.Running))
	o.someInt("pending", int64(s.Pending))
	o.someText("last_run_id", s.LastRunID)
	o.someTime("last_scheduled_at", s.LastScheduledAt)
	o.someTime("last_started_at", s.LastStartedAt)
	o.someTime("last_finished_at", s.LastFinishedAt)
	o.someInt("last_duration_ms", s.LastDurationMS)
	o.someText("last_status", string(s.LastStatus))
	o.someText("last_error", s.LastError)
	o.someTime("last_success_at", s.LastSuccessAt)
	o.someTime("next_run_at", s.NextRunAt)
	o.someInt("succeeded_total", s.SucceededTotal)
	o.someInt("failed_total", s.FailedTotal)
	o.someInt("canceled_total", s.CanceledTotal)
	o.someInt("scheduled_runs_total", s.ScheduledRunsTotal)
	o.someInt("skipped_total", s.SkippedTotal)
	o.someCounts("skipped_by_reason", s.SkippedByReason)
	o.someInt("missed_total", s.MissedTotal)
	o.someCounts("missed_by_reason", s.MissedByReason)
	o.someInt("retried_total", s.RetriedTotal)
	o.someInt("recovered_total", s.RecoveredTotal)
	o.someInt("consecutive_failures", s.ConsecutiveFailures)
	if s.MeanDurationMS != 0 {
		o.rare("mean_duration_ms", s.MeanDurationMS)
	}
	o.someInt("max_duration_ms", s.MaxDurationMS)
	if len(s.Alerting) > 0 {
		o.rare("alerting", s.Alerting)
	}
	return o.end()
}

// statusSize is about how long a status is, in bytes.
const statusSize = 1024

// maxLastError bounds last_error: the status of every job is read at once, the whole error is in the
// run's record.
const maxLastError = 256

// DecodeStatus reads the value of a status key of a job.
func DecodeStatus(job string, kv *mvccpb.KeyValue) View { return viewOf(job, kv) }

// SuccessRate is the share of finished runs that succeeded, from 0 to 1; ok is false before the first.
func (s *JobStatus) SuccessRate() (rate float64, ok bool) {
	n := s.SucceededTotal + s.FailedTotal
	if n == 0 {
		return 0, false
	}
	return float64(s.SucceededTotal) / float64(n), true
}

// Decided moves the cursor to t, never back: a clock that was set back cannot undo a decision.
func (s JobStatus) Decided(t time.Time) JobStatus {
	if t.After(s.Cursor) {
		s.Cursor = t
	}
	return s
}

// Queued accounts for r, which waits until the job is idle.
func (s JobStatus) Queued(r *Run) JobStatus {
	s = s.decidedBy(r).planned(r, 1)
	s.Queue = append(slices.Clone(s.Queue), r.ID)
	s.Pending = len(s.Queue)
	return s
}

// Merged accounts for a further scheduled time that r stands for, which waits already.
func (s JobStatus) Merged(r *Run) JobStatus { return s.decidedBy(r) }

// Started accounts for the first attempt of r, which may have waited.
func (s JobStatus) Started(r *Run) JobStatus {
	if !slices.Contains(s.Queue, r.ID) {
		s = s.planned(r, 1)
	}
	s = s.decidedBy(r).dequeued(r)
	s.Live = append(slices.Clone(s.Live), r.ID)
	s.Running = len(s.Live)
	s.LastRunID = r.ID
	s.LastScheduledAt = r.ScheduledAt
	s.LastStartedAt = r.StartedAt
	return s
}

// Recovered accounts for a further attempt of r after its instance was lost.
func (s JobStatus) Recovered(r *Run) JobStatus {
	s.RecoveredTotal++
	s.LastStartedAt = r.StartedAt
	return s
}

// Retried accounts for an attempt of r that failed and is to be followed by another.
func (s JobStatus) Retried() JobStatus {
	s.RetriedTotal++
	return s
}

// Finished accounts for the end of a running r.
func (s JobStatus) Finished(r *Run) JobStatus {
	s.Live = without(s.Live, r.ID)
	s.Running = len(s.Live)
	s.LastRunID = r.ID
	s.LastScheduledAt = r.ScheduledAt
	s.LastFinishedAt = r.FinishedAt
	s.LastDurationMS = r.DurationMS
	s.LastStatus = r.Status
	s.LastError = CutHead(r.Error, maxLastError)
	switch r.Status { //nolint:exhaustive // only these end a running run
	case Succeeded:
		s.SucceededTotal++
		s.ConsecutiveFailures = 0
		s.LastSuccessAt = r.FinishedAt
	case Failed:
		s.FailedTotal++
		s.ConsecutiveFailures++
	case Canceled:
		s.CanceledTotal++
		return s
	}
	s.MaxDurationMS = max(s.MaxDurationMS, r.DurationMS)
	n := float64(s.SucceededTotal + s.FailedTotal)
	s.MeanDurationMS += (float64(r.DurationMS) - s.MeanDurationMS) / n
	return s
}

// NotRun accounts for a run that was skipped, missed or canceled before it began, which may have waited.
func (s JobStatus) NotRun(r *Run) JobStatus {
	if slices.Contains(s.Queue, r.ID) {
		s = s.planned(r, -1)
	}
	s = s.decidedBy(r).dequeued(r)
	switch r.Status { //nolint:exhaustive // only these are of runs that did not run
	case Skipped:
		s.SkippedTotal += r.Times()
		s.SkippedByReason = plus(s.SkippedByReason, r.Reason, r.Times())
	case Missed:
		s.MissedTotal += r.Times()
		s.MissedByReason = plus(s.MissedByReason, r.Reason, r.Times())
	case Canceled:
		s.CanceledTotal += r.Times()
	}
	return s
}

// planned counts the scheduled times that become runs.
func (s JobStatus) planned(r *Run, n int64) JobStatus {
	if r.Trigger.Scheduled() {
		s.ScheduledRunsTotal += n
	}
	return s
}

func (s JobStatus) dequeued(r *Run) JobStatus {
	s.Queue = without(s.Queue, r.ID)
	s.Pending = len(s.Queue)
	return s
}

// decidedBy moves the cursor for a run that the schedule yielded; a manual run does not eat a
// scheduled time.
func (s JobStatus) decidedBy(r *Run) JobStatus {
	if r.Trigger.Scheduled() {
		return s.Decided(r.Covers())
	}
	return s
}

func plus(counts map[string]int64, reason string, n int64) map[string]int64 {
	next := maps.Clone(counts)
	if next == nil {
		next = make(map[string]int64, 1)
	}
	next[reason] += n
	return next
}

func without(ids []string, id string) []string {
	left := slices.DeleteFunc(slices.Clone(ids), func(other string) bool { return other == id })
	if len(left) == 0 {
		return nil // as it reads back from etcd
	}
	return left
}
