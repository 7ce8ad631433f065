package state

import (
	"fmt"
	"time"
)

// Spec is a job's definition as it runs. It is for readers and for the claim's compare; what a command
// needs beyond it (its environment, say) stays with the instance, so no secret is written to etcd.
type Spec struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid"`  // one per creation: a job deleted and created again is a new job
	Hash        string            `json:"hash"` // of everything that makes the job what it is
	Source      string            `json:"source"`
	Schedule    string            `json:"schedule"`
	TimeZone    string            `json:"time_zone"`
	Description string            `json:"description,omitempty"`
	Target      string            `json:"target,omitempty"` // what it runs, for people
	Start       time.Time         `json:"start,omitzero"`   // first and last scheduled time that there can be
	End         time.Time         `json:"end,omitzero"`
	MaxRuns     int64             `json:"max_runs,omitempty"`
	Jitter      Duration          `json:"jitter,omitempty"`
	Delay       Duration          `json:"delay,omitempty"` // the job's share of the jitter: how long after its scheduled time it is due
	Overlap     string            `json:"overlap"`
	Limit       int               `json:"overlap_limit,omitempty"` // of queue: how many may wait; of allow: how many may run
	CatchUp     string            `json:"catch_up"`
	CatchUpMax  int               `json:"catch_up_limit,omitempty"`
	Window      Duration          `json:"catch_up_window,omitempty"`
	Recovery    string            `json:"recovery"`
	Recoveries  int               `json:"max_recoveries,omitempty"`
	Checkpoint  Scope             `json:"checkpoint,omitempty"`
	Retry       *RetrySpec        `json:"retry,omitempty"`
	Timeout     Duration          `json:"timeout"`
	LockTTL     Duration          `json:"lock_ttl"`
	Grace       Duration          `json:"grace"`
	Alert       *AlertSpec        `json:"alert,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Retired     bool              `json:"retired,omitempty"` // no longer among the leader's jobs
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
}

// ScheduleID is the same for specs that yield the same scheduled times.
func (s *Spec) ScheduleID() string {
	return fmt.Sprintf("%s %s %d %d", s.Schedule, s.TimeZone, s.Start.Unix(), s.End.Unix())
}

// RetrySpec is how failed attempts are followed by others.
type RetrySpec struct {
	MaxAttempts int      `json:"max_attempts"`
	Initial     Duration `json:"initial"`
	Max         Duration `json:"max"`
	Multiplier  float64  `json:"multiplier"`
}

// Lock is the value of a lock key.
type Lock struct {
	Run      string `json:"run"`
	Instance string `json:"instance"`
}

func (l Lock) encode() []byte {
	o := newObject(len(`"run":"","instance":""}`) + len(l.Run) + len(l.Instance))
	o.text("run", l.Run)
	o.text("instance", l.Instance)
	return o.end()
}

// Instance is one process that takes part, leading or not.
type Instance struct {
	ID        string    `json:"instance"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Version   string    `json:"version,omitempty"`
	Address   string    `json:"address,omitempty"` // of its HTTP API
	StartedAt time.Time `json:"started_at"`
}

// Duration is a time.Duration that reads as "1m30s" in JSON.
type Duration time.Duration

// MarshalText renders d as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses what time.ParseDuration takes.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q: %w", text, err)
	}
	*d = Duration(v)
	return nil
}
