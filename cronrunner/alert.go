package cronrunner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// Alert says what of a job somebody is to look at. Each such incident is in the log and told to the observer, and,
// with Notify, told to whoever that tells: once, also across changes of leader. The zero value is none.
type Alert struct {
	// AfterFailures is how many runs in a row may fail until the job counts as failing; a run that succeeds ends
	// that. 0 is never.
	AfterFailures int
	// Missed has a scheduled time that was not run, and will not be, be an incident. It lasts until a run succeeds, and
	// grows with what is missed meanwhile.
	Missed bool
	// Overrun is how long a run may go on, from its first attempt's start, before that is an incident, which ends with
	// the run. At least 1 s; 0 is for ever. The run is not stopped: that is for Timeout.
	Overrun time.Duration
	// OmitRecovered has Notify not be told when a job that was failing has succeeded.
	OmitRecovered bool
	// Notify is called by the leader, beside its loop, with each thing that is to be told. What it returns nil for is
	// told. After an error it is called again, after a pause that grows from 1 s to 5 m, or the one that [RetryAfter]
	// asks for, up to 1 h; with [Permanent] it is given up. If the leader dies before it could note down that
	// something was told, the next one tells it again, with the same [Notice.Key]. At most 8 calls go on at once, one
	// of a job, each for 15 s at most and no longer than the term; a call that does not return when its context ends
	// holds up the others, and Run's return. Default none: log and observer are all.
	Notify func(ctx context.Context, n Notice) error
	// Target says whom Notify tells, for people. It is shown and stored: no secrets. Default "code".
	Target string
}

// MinOverrun is the shortest Alert.Overrun.
const MinOverrun = time.Second

func (a Alert) withDefaults() Alert {
	if a.Notify != nil {
		a.Target = orDefault(a.Target, "code")
	}
	return a
}

func (a Alert) check(fault func(string, error)) {
	if a.AfterFailures < 0 {
		fault("alert.after_failures", fmt.Errorf("%d is negative", a.AfterFailures))
	}
	if a.Overrun != 0 && a.Overrun < MinOverrun {
		fault("alert.overrun", fmt.Errorf("%s is too short; use at least %s", a.Overrun, MinOverrun))
	}
	if a.spec() == nil && a.Target != "" {
		fault("alert", errors.New("it never alerts; use after_failures, missed or overrun"))
	}
}

// spec is nil for none.
func (a Alert) spec() *state.AlertSpec {
	if a.AfterFailures == 0 && !a.Missed && a.Overrun == 0 {
		return nil
	}
	return &state.AlertSpec{
		AfterFailures: a.AfterFailures, Missed: a.Missed, Overrun: state.Duration(a.Overrun),
		Recovered: !a.OmitRecovered && a.AfterFailures > 0, Notify: a.Target,
	}
}

// Notice is what is told of a job's incident. As JSON it is what a webhook gets; chat tools show its text.
type Notice struct {
	// Key is the same when the same thing is told again, and of nothing else: who is told can tell by it.
	Key         string          `json:"-"`
	Job         string          `json:"job"`
	Kind        state.AlertKind `json:"kind"`
	Run         string          `json:"run"`   // that the incident began with
	Since       time.Time       `json:"since"` // when that run ended; of missed, the first time that was; of overrun, when the run began
	Count       int64           `json:"count"` // failures in a row, or times that were missed; 0 for an overrun
	Error       string          `json:"error"` // of the last run that failed, at most 256 bytes; may be empty
	RecoveredAt time.Time       `json:"recovered_at,omitzero"`
	Instance    string          `json:"instance"` // that tells it
	Namespace   string          `json:"namespace"`
	Text        string          `json:"text"`
}

// noticeOf is what is to be told: kind, of an incident.
func noticeOf(j *job, in *state.Incident, kind state.AlertKind, instance, namespace string) Notice {
	n := Notice{
		Key: strings.Join([]string{namespace, j.Name, string(kind), in.Run}, "/"),
		Job: j.Name, Kind: kind, Run: in.Run, Since: in.Since, Count: in.Count, Error: in.Error,
		Instance: instance, Namespace: namespace,
	}
	since := rfc3339(in.Since)
	text := ""
	switch kind {
	case state.AlertFailing:
		text = fmt.Sprintf("job %s is failing: %s, run %s ended at %s", j.Name, times(in.Count, "failure", " in a row"), in.Run, since)
	case state.AlertMissed:
		text = fmt.Sprintf("job %s has missed %s, from %s on", j.Name, times(in.Count, "scheduled time", ""), since)
	case state.AlertOverrun:
		text = fmt.Sprintf("run %s of job %s goes on for more than %s, since %s", in.Run, j.Name, j.Alert.Overrun, since)
	case state.AlertRecovered:
		n.RecoveredAt = in.ResolvedAt
		text = fmt.Sprintf("job %s has recovered: a run succeeded at %s, after %s", j.Name, rfc3339(in.ResolvedAt), times(in.Count, "failure", " in a row"))
	}
	if line, _, _ := strings.Cut(in.Error, "\n"); line != "" {
		text += ": " + line
	}
	if namespace != state.DefaultNamespace {
		text = namespace + ": " + text
	}
	n.Text = "etcdcron: " + text
	return n
}

// times says how many of something there are.
func times(n int64, what, how string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss%s", n, what, how)
}

// alertOf is what a job that is defined so alerts by; nil if it is not among the leader's jobs.
func alertOf(def *state.Definition) *state.AlertSpec {
	if def.Spec.Retired {
		return nil
	}
	return def.Spec.Alert
}

// noteIncidents says what a run's record, which is written, means for its job: by who wrote it, so once.
func (s *Scheduler) noteIncidents(run *state.Run, before, after *state.JobStatus) {
	if in, opened := after.OpenedBy(run.ID); opened {
		s.noteOpened(run.Job, in)
	}
	if run.Status == state.Succeeded && before.Alerts(state.AlertFailing) && !after.Alerts(state.AlertFailing) {
		s.log.Info("job has recovered", zap.String("job", run.Job), zap.String("run", run.ID))
	}
}

func (s *Scheduler) noteOpened(job string, in state.Incident) {
	fields := []zap.Field{zap.String("job", job), zap.String("kind", string(in.Kind)), zap.String("run", in.Run), zap.Time("since", in.Since)}
	if in.Count > 0 {
		fields = append(fields, zap.Int64("count", in.Count))
	}
	if in.Error != "" {
		fields = append(fields, zap.String("error", in.Error))
	}
	s.log.Warn("job alerts", fields...)
	s.observer.Observe(Alerted{Job: job, Incident: in})
}
