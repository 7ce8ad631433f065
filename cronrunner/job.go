package cronrunner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// Handler does the work of a run. It returns nil when the work is done; that is what gets recorded, also
// when ctx has ended meanwhile. When ctx ends it must return within Job.Grace. It may be called again
// for the same run, with the next attempt, if its instance is lost.
type Handler func(ctx context.Context, run *Run) error

// OverlapPolicy is what a due run does while the job still runs.
type OverlapPolicy string

// The overlap policies.
const (
	// Skip records the due run as skipped. It is the default.
	Skip OverlapPolicy = "skip"
	// Queue has it wait: every run is done, in order. A queue that is full skips.
	Queue OverlapPolicy = "queue"
	// Coalesce has one run wait, which stands for all that are due meanwhile.
	Coalesce OverlapPolicy = "coalesce"
	// Replace cancels the run that is running, waits until it has stopped, and then runs the newest.
	Replace OverlapPolicy = "replace"
	// Allow runs several at once, up to a limit; beyond it, it skips.
	Allow OverlapPolicy = "allow"
)

// Overlap is what becomes of runs that are due while the job still runs.
type Overlap struct {
	Policy OverlapPolicy // default Skip
	// Limit is, of Queue, how many runs may wait (default 20); of Allow, how many may run at once (default
	// 10). At most 1000.
	Limit int
}

// CatchUpPolicy is what happens to scheduled times that passed while nobody led.
type CatchUpPolicy string

// The catch-up policies.
const (
	Latest CatchUpPolicy = "latest" // run the newest, record the others as missed; the default
	All    CatchUpPolicy = "all"    // run them all, the oldest first, as many at once as the overlap policy allows
	None   CatchUpPolicy = "none"   // record all as missed
)

// CatchUp is how a job makes up for times when nobody led.
type CatchUp struct {
	Policy CatchUpPolicy // default Latest
	Window time.Duration // older times are missed; default 24 h
	Limit  int           // of All: how many are run, the newest; older ones are missed; default 100, at most 1000
}

// RecoveryPolicy is what happens to a run whose instance died.
type RecoveryPolicy string

// The recovery policies.
const (
	Resume RecoveryPolicy = "resume" // the next attempt of the same run; the default
	Fail   RecoveryPolicy = "fail"   // the run has failed
)

// Recovery is how a job goes on after its instance died in the middle of a run.
type Recovery struct {
	Policy RecoveryPolicy // default Resume
	Max    int            // attempts after lost instances, of one run; default 3
}

// Defaults and bounds of a Job.
const (
	DefaultTimeout       = time.Hour
	DefaultLockTTL       = 15 * time.Second
	DefaultCatchUpWindow = 24 * time.Hour
	DefaultMaxRecoveries = 3
	DefaultQueueLimit    = 20
	DefaultAllowLimit    = 10
	MaxOverlapLimit      = 1000
	DefaultCatchUpLimit  = 100
	MaxCatchUpLimit      = 1000
	MaxJitter            = 24 * time.Hour
	MinLockTTL           = 3 * time.Second
	MaxLockTTL           = time.Hour
	MaxGrace             = 10 * time.Second // of the default; a longer one can be asked for
	MaxText              = 4 << 10          // bytes of a description, a target, and all labels together

	// lockSlack is what a lock needs beside the grace: the watchdog looks ten times a second, and a
	// killed process takes a moment to be gone.
	lockSlack = 250 * time.Millisecond
)

// Job is a named thing to run, with a schedule and policies.
type Job struct {
	// Name is unique in the namespace: 1 to 128 letters, digits, '.', '_' and '-'.
	Name string
	// Schedule is a cron expression of 5 fields, or 6 with seconds first, or a descriptor such as
	// @daily, @every 90s, @at 2026-12-01T09:00:00Z.
	Schedule string
	// TimeZone is an IANA name such as Asia/Shanghai. Default UTC.
	TimeZone    string
	Description string
	// Target says what the job runs, for people. It is shown and stored: no secrets.
	Target string
	// Handler does the work. Required.
	Handler  Handler
	Overlap  Overlap
	CatchUp  CatchUp
	Recovery Recovery
	Retry    Retry
	Alert    Alert
	// Checkpoint is how long checkpoints last: PerRun (default), for the attempts of one run, or PerJob, carried on
	// from run to run until one succeeds.
	Checkpoint state.Scope
	// Start and End are the first and the last scheduled time that there can be, both included. Default none.
	Start, End time.Time
	// MaxRuns is how many runs the schedule yields, over all time; then it is exhausted. What is skipped or
	// missed does not count, nor does what people ask for. Default no limit. To edit it, Start or End is to edit
	// the schedule: the times before are not caught up.
	MaxRuns int64
	// Jitter spreads jobs that share a schedule: this one is due less than that after its scheduled times, in whole
	// seconds, always by the same part of it, which follows from its name. Default none, at most 24 h.
	Jitter time.Duration
	// Timeout is the time limit of an attempt. Default 1 h.
	Timeout time.Duration
	// LockTTL is how long the job stays locked after its instance died, in whole seconds. Default 15 s,
	// at least 3 s.
	LockTTL time.Duration
	// Grace is how long the handler may take to return after its context ended. The lock must outlast
	// it, so it is at most LockTTL/3 - 250 ms. Default LockTTL/4, at most 10 s.
	Grace  time.Duration
	Labels map[string]string
}

// ErrBadJob is a job definition that cannot be accepted.
var ErrBadJob = errors.New("bad job")

// Check says what is wrong with the job, every fault at once; nil if nothing. It needs no Handler.
func (j Job) Check() error {
	_, err := j.compile()
	return err
}

// job is a Job that was checked, with its defaults filled in.
type job struct {
	Job

	schedule *Schedule
	delay    time.Duration    // its part of the jitter
	alert    *state.AlertSpec // nil for none
}

// WithDefaults is the job with every field that was left out at its default.
func (j Job) WithDefaults() Job {
	j.Overlap.Policy = orDefault(j.Overlap.Policy, Skip)
	switch j.Overlap.Policy { //nolint:exhaustive // the others have no limit
	case Queue:
		j.Overlap.Limit = orDefault(j.Overlap.Limit, DefaultQueueLimit)
	case Allow:
		j.Overlap.Limit = orDefault(j.Overlap.Limit, DefaultAllowLimit)
	}
	j.CatchUp.Policy = orDefault(j.CatchUp.Policy, Latest)
	if j.CatchUp.Policy == All {
		j.CatchUp.Limit = orDefault(j.CatchUp.Limit, DefaultCatchUpLimit)
	}
	j.CatchUp.Window = orDefault(j.CatchUp.Window, DefaultCatchUpWindow)
	j.Recovery.Policy = orDefault(j.Recovery.Policy, Resume)
	j.Recovery.Max = orDefault(j.Recovery.Max, DefaultMaxRecoveries)
	j.Retry = j.Retry.withDefaults()
	j.Alert = j.Alert.withDefaults()
	j.Checkpoint = orDefault(j.Checkpoint, state.PerRun)
	j.Timeout = orDefault(j.Timeout, DefaultTimeout)
	j.LockTTL = orDefault(j.LockTTL, DefaultLockTTL)
	j.Grace = orDefault(j.Grace, min(j.LockTTL/4, MaxGrace))
	return j
}

// compile checks j and fills in its defaults.
func (j Job) compile() (*job, error) {
	j = j.WithDefaults()
	var faults []error
	fault := func(field string, err error) { faults = append(faults, &FieldError{Field: field, Err: err}) }

	if err := state.CheckJobName(j.Name); err != nil {
		fault("name", err)
	}
	schedule, err := j.parseSchedule(fault)
	if err != nil {
		fault("schedule", fmt.Errorf("%q: %w", j.Schedule, err))
	}
	if sound := j.checkBounds(fault); sound && err == nil {
		schedule = schedule.Within(j.Start, j.End)
		if schedule.Next(time.Unix(minUnix, 0)).IsZero() {
			fault("schedule", fmt.Errorf("%q: never fires from %s to %s", j.Schedule,
				orDefault(rfc3339(j.Start), "the beginning"), orDefault(rfc3339(j.End), "the end")))
		}
	}
	j.checkSize(fault)
	j.Overlap.check(fault)
	j.CatchUp.check(j.Overlap.Policy, fault)
	if j.Recovery.Policy != Resume && j.Recovery.Policy != Fail {
		fault("recovery", fmt.Errorf("%q is not a recovery policy; use %q or %q", j.Recovery.Policy, Resume, Fail))
	}
	if j.Recovery.Max < 0 {
		fault("max_recoveries", fmt.Errorf("%d is negative", j.Recovery.Max))
	}
	j.Retry.check(fault)
	j.Alert.check(fault)
	switch {
	case j.Checkpoint != state.PerRun && j.Checkpoint != state.PerJob:
		fault("checkpoint", fmt.Errorf("%q is not a scope of checkpoints; use %q or %q", j.Checkpoint, state.PerRun, state.PerJob))
	case j.Checkpoint == state.PerJob && j.Overlap.Policy == Allow:
		fault("checkpoint", fmt.Errorf("%q contradicts overlap %q: runs at the same time would overwrite each other's", state.PerJob, Allow))
	}
	if j.Timeout < time.Millisecond {
		fault("timeout", fmt.Errorf("%s is too short to start anything", j.Timeout))
	}
	j.checkLock(fault)
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrBadJob, j.Name, err)
	}
	j.Labels = maps.Clone(j.Labels)
	return &job{Job: j, schedule: schedule, delay: delayOf(j.Name, j.Jitter), alert: j.Alert.spec()}, nil
}

func (o Overlap) check(fault func(string, error)) {
	switch o.Policy {
	case Queue, Allow:
		if o.Limit < 1 || o.Limit > MaxOverlapLimit {
			fault("overlap.limit", fmt.Errorf("%d is not between 1 and %d", o.Limit, MaxOverlapLimit))
		}
	case Skip, Coalesce, Replace:
		if o.Limit != 0 {
			fault("overlap.limit", fmt.Errorf("only %q and %q have a limit", Queue, Allow))
		}
	default:
		fault("overlap", fmt.Errorf("%q is not an overlap policy; use %q, %q, %q, %q or %q", o.Policy, Skip, Queue, Coalesce, Replace, Allow))
	}
}

func (c CatchUp) check(overlap OverlapPolicy, fault func(string, error)) {
	switch c.Policy {
	case All:
		switch {
		case c.Limit < 1 || c.Limit > MaxCatchUpLimit:
			fault("catch_up.limit", fmt.Errorf("%d is not between 1 and %d", c.Limit, MaxCatchUpLimit))
		case overlap == Coalesce:
			fault("catch_up", fmt.Errorf("%q contradicts overlap %q, which has one run stand for all that passed; use %q", All, Coalesce, Latest))
		case overlap == Replace:
			fault("catch_up", fmt.Errorf("%q contradicts overlap %q, which runs the newest only; use %q", All, Replace, Latest))
		}
	case Latest, None:
		if c.Limit != 0 {
			fault("catch_up.limit", fmt.Errorf("only %q has a limit", All))
		}
	default:
		fault("catch_up", fmt.Errorf("%q is not a catch-up policy; use %q, %q or %q", c.Policy, Latest, All, None))
	}
	if c.Window < time.Second {
		fault("catch_up.window", fmt.Errorf("%s is too short; use at least 1s, and more than a failover takes", c.Window))
	}
}

// checkBounds checks what limits the schedule, whatever that is, and reports whether start and end make sense.
// Scheduled times are whole seconds, so start and end are too from here on.
func (j *Job) checkBounds(fault func(string, error)) (sound bool) {
	if j.MaxRuns < 0 {
		fault("max_runs", fmt.Errorf("%d is negative", j.MaxRuns))
	}
	switch {
	case j.Jitter < 0 || j.Jitter > MaxJitter:
		fault("jitter", fmt.Errorf("%s is not between 0s and %s", j.Jitter, MaxJitter))
	case j.Jitter%time.Second != 0:
		fault("jitter", fmt.Errorf("%s: use whole seconds", j.Jitter))
	}
	sound = true
	inYears := func(field string, t time.Time) {
		if year := t.UTC().Year(); !t.IsZero() && (year < 1970 || year > 9999) {
			fault(field, fmt.Errorf("%s: use a year from 1970 to 9999", t.UTC().Format(time.DateTime)))
			sound = false
		}
	}
	inYears("start", j.Start)
	inYears("end", j.End)
	if !sound {
		return false
	}
	if !j.Start.IsZero() {
		j.Start = j.Start.Add(time.Second - time.Nanosecond).Truncate(time.Second)
	}
	j.End = j.End.Truncate(time.Second)
	if !j.End.IsZero() && j.End.Before(j.Start) {
		fault("end", fmt.Errorf("%s is before the start, %s", rfc3339(j.End), rfc3339(j.Start)))
		return false
	}
	return true
}

// rfc3339 renders t; "" when it is zero.
func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// parseSchedule blames a time zone that is wrong by itself on its own field.
func (j *Job) parseSchedule(fault func(string, error)) (*Schedule, error) {
	zone := j.TimeZone
	if zone != "" {
		if _, err := loadZone(zone); err != nil {
			fault("time_zone", err)
			zone = ""
		}
	}
	return ParseSchedule(j.Schedule, zone)
}

// checkSize keeps the spec well below what etcd takes as one value.
func (j *Job) checkSize(fault func(string, error)) {
	tooLong := func(field string, size int) {
		if size > MaxText {
			fault(field, fmt.Errorf("it has %d bytes, at most %d are allowed", size, MaxText))
		}
	}
	tooLong("description", len(j.Description))
	tooLong("target", len(j.Target))
	tooLong("alert.target", len(j.Alert.Target))
	size := 0
	for k, v := range j.Labels {
		size += len(k) + len(v)
	}
	tooLong("labels", size)
}

// checkLock checks LockTTL and Grace. A renewal is due at a third of the TTL; if it fails, another
// third is for trying again, and the last third is what a handler has to stop in.
func (j *Job) checkLock(fault func(string, error)) {
	switch {
	case j.LockTTL < MinLockTTL:
		fault("lock_ttl", fmt.Errorf("%s is too short; use at least %s", j.LockTTL, MinLockTTL))
		return
	case j.LockTTL > MaxLockTTL:
		fault("lock_ttl", fmt.Errorf("%s is too long: for so long nobody goes on with a run whose instance died; use at most %s "+
			"(the lock of a run that goes on is renewed)", j.LockTTL, MaxLockTTL))
		return
	case j.LockTTL%time.Second != 0:
		fault("lock_ttl", fmt.Errorf("%s: use whole seconds, as etcd counts them", j.LockTTL))
		return
	}
	switch need := 3 * (j.Grace + lockSlack); {
	case j.Grace < 0:
		fault("grace", fmt.Errorf("%s is negative", j.Grace))
	case need > j.LockTTL:
		fault("lock_ttl", fmt.Errorf("%s is too short for a grace of %s: a job that loses its lock must have stopped before "+
			"another instance can get it; use a lock_ttl of at least %s, or a grace of at most %s",
			j.LockTTL, j.Grace, (need+time.Second-1).Truncate(time.Second), (j.LockTTL/3-lockSlack).Truncate(time.Millisecond)))
	}
}

// lockMargin is how long before the lock could be lost an attempt is told to stop.
func (j *job) lockMargin() time.Duration { return j.Grace + lockSlack }

// FieldError is one fault of a job definition and the field that has it.
type FieldError struct {
	Field string // as in a jobs file: schedule, lock_ttl, catch_up.window
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap gives the fault itself.
func (e *FieldError) Unwrap() error { return e.Err }

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
