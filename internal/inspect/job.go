package inspect

import (
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// Job is a job in a list. What is not known yet is null.
type Job struct {
	Name           string           `json:"name"`
	Schedule       string           `json:"schedule"`
	TimeZone       string           `json:"time_zone"`
	Paused         bool             `json:"paused"`
	Running        int              `json:"running"`
	Pending        int              `json:"pending"`
	NextRunAt      *time.Time       `json:"next_run_at"` // null when it will not run: paused, retired, invalid
	LastStatus     *state.RunStatus `json:"last_status"`
	LastStartedAt  *time.Time       `json:"last_started_at"`
	LastFinishedAt *time.Time       `json:"last_finished_at"`
	LastDurationMS *int64           `json:"last_duration_ms"`
	LastError      *string          `json:"last_error"`
	SkippedTotal   int64            `json:"skipped_total"`
	MissedTotal    int64            `json:"missed_total"`
	SucceededTotal int64            `json:"succeeded_total"`
	FailedTotal    int64            `json:"failed_total"`
	SuccessRate    *float64         `json:"success_rate"` // from 0 to 1
	Alerting       []state.Incident `json:"alerting"`     // incidents that last, or of which something is still to be told
	Description    string           `json:"description"`
	Target         string           `json:"target"`
	Source         string           `json:"source"`
	Retired        bool             `json:"retired"`
	Invalid        *string          `json:"invalid"` // why the job cannot be run as it stands in etcd
}

// Summarize is a job as a list shows it.
func Summarize(def state.Definition, now time.Time) Job {
	spec, st := &def.Spec, &def.View.Status
	s := Job{
		Name: spec.Name, Schedule: spec.Schedule, TimeZone: spec.TimeZone,
		Paused: def.Control.Paused, Running: st.Running, Pending: st.Pending,
		LastStatus: unlessZero(st.LastStatus), LastStartedAt: unlessZero(st.LastStartedAt),
		LastFinishedAt: unlessZero(st.LastFinishedAt), LastError: unlessZero(st.LastError),
		SkippedTotal: st.SkippedTotal, MissedTotal: st.MissedTotal,
		SucceededTotal: st.SucceededTotal, FailedTotal: st.FailedTotal,
		Description: spec.Description, Target: spec.Target, Source: spec.Source, Retired: spec.Retired,
	}
	if s.LastFinishedAt != nil {
		s.LastDurationMS = &st.LastDurationMS
	}
	if rate, ok := st.SuccessRate(); ok {
		s.SuccessRate = &rate
	}
	s.Alerting = append([]state.Incident{}, st.Alerting...)
	outlook, err := OutlookOf(def)
	switch {
	case err != nil:
		s.Invalid = unlessZero(err.Error())
	case s.Paused || s.Retired:
	case st.NextRunAt.After(now):
		s.NextRunAt = &st.NextRunAt
	default: // what is recorded is over: nobody leads
		if next := outlook.Times(now, 1); len(next) > 0 {
			s.NextRunAt = &next[0]
		}
	}
	return s
}

func unlessZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
