package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what a record may hold. Longer texts are cut, so that the outcome itself can always be
// written.
const (
	MaxError    = 4 << 10  // bytes of a run's error
	MaxOutput   = 16 << 10 // bytes of a run's output tail
	MaxAttempts = 10       // attempts listed in a record; the newest are kept
)

// RunStatus is where a run stands.
type RunStatus string

// The statuses of a run. All but pending and running are final.
const (
	Pending   RunStatus = "pending"
	Running   RunStatus = "running"
	Succeeded RunStatus = "succeeded"
	Failed    RunStatus = "failed"
	Skipped   RunStatus = "skipped"
	Missed    RunStatus = "missed"
	Canceled  RunStatus = "canceled"
)

// Final reports whether a run in this status is over.
func (s RunStatus) Final() bool { return s != Pending && s != Running && s != "" }

// becomes lists the legal steps of a run; "" is a run without a record.
var becomes = map[RunStatus][]RunStatus{
	"":      {Pending, Running, Skipped, Missed},
	Pending: {Pending, Running, Skipped, Canceled},
	Running: {Running, Succeeded, Failed, Canceled},
}

// CanBecome reports whether a run in status s may go to next. From running to running is the next
// attempt of the same run; from pending to pending, another scheduled time that the same run stands for.
func (s RunStatus) CanBecome(next RunStatus) bool {
	return slices.Contains(becomes[s], next)
}

// Trigger is what caused a run.
type Trigger string

// The triggers of a run.
const (
	BySchedule Trigger = "schedule"
	ByCatchUp  Trigger = "catch_up"
	ByHand     Trigger = "manual"
	ByRetry    Trigger = "retry"
	ByBackfill Trigger = "backfill"
)

// Scheduled reports whether the schedule yielded the run, so that it is what decides a scheduled time. A run
// that people asked for does not.
func (t Trigger) Scheduled() bool { return t == BySchedule || t == ByCatchUp }

// The reasons that a record can give for its status.
const (
	ReasonOverlap      = "overlap"       // skipped: the job's last run was still going on
	ReasonQueueFull    = "queue_full"    // skipped: as many runs of the job were waiting as may
	ReasonCoalesced    = "coalesced"     // skipped: a run was waiting already, which stands for it too
	ReasonReplaced     = "replaced"      // skipped or canceled: a newer run took its place
	ReasonRetired      = "retired"       // skipped: it was waiting when its job was removed
	ReasonRecordLost   = "record_lost"   // skipped: it was waiting, and its record was deleted or broken
	ReasonPaused       = "paused"        // skipped: the job was paused; canceled: just before it began
	ReasonCatchUp      = "catch_up"      // missed: passed while nobody led, and catch-up is none
	ReasonSuperseded   = "superseded"    // missed: a newer scheduled time ran in its place
	ReasonLimit        = "limit"         // missed: more times had passed than are caught up
	ReasonWindow       = "window"        // missed: older than the catch-up window
	ReasonFailed       = "failed"        // of an attempt that was followed by another: its handler said so
	ReasonTimeout      = "timeout"       // failed: the attempt's time limit
	ReasonPanic        = "panic"         // failed: the handler panicked
	ReasonInstanceLost = "instance_lost" // failed: its instance died and it may not be resumed
	ReasonDrain        = "drain"         // canceled: its instance shut down
	ReasonRequested    = "requested"     // canceled: somebody asked for it
)

// Run is the record of one run. Times are UTC.
type Run struct {
	Job          string    `json:"job"`
	ID           string    `json:"id"`
	Trigger      Trigger   `json:"trigger"`
	ScheduledAt  time.Time `json:"scheduled_at"`
	Status       RunStatus `json:"status"`
	Reason       string    `json:"reason,omitempty"`
	Attempt      int       `json:"attempt,omitempty"` // from 1; 0 for a run that never started
	StartedAt    time.Time `json:"started_at,omitzero"`
	FinishedAt   time.Time `json:"finished_at,omitzero"`
	DurationMS   int64     `json:"duration_ms,omitempty"` // of the last attempt
	LatenessMS   int64     `json:"lateness_ms,omitempty"` // first start minus scheduled time
	TimeoutMS    int64     `json:"timeout_ms,omitempty"`  // time limit of an attempt
	Instance     string    `json:"instance,omitempty"`    // who ran it, or who recorded that it did not run
	Term         int64     `json:"term,omitempty"`        // under which it was claimed
	FencingToken int64     `json:"fencing_token,omitempty"`
	Error        string    `json:"error,omitempty"`
	ExitCode     *int      `json:"exit_code,omitempty"`
	Output       string    `json:"output,omitempty"`      // tail
	Progress     *Progress `json:"progress,omitempty"`    // the last, of a run that is over
	Retries      int       `json:"retries,omitempty"`     // attempts that failed and were followed by another
	Recoveries   int       `json:"recoveries,omitempty"`  // attempts that were cut off by the loss of their instance
	RetryAt      time.Time `json:"retry_at,omitzero"`     // when the next attempt begins, of a run that waits for that
	RetryInMS    int64     `json:"retry_in_ms,omitempty"` // how long that was when the last one failed
	Attempts     []Attempt `json:"attempts,omitempty"`
	Count        int64     `json:"count,omitempty"` // scheduled times that this record stands for, when more than one
	Until        time.Time `json:"until,omitzero"`  // last of them

	// Of runs that somebody asked for.
	RequestedBy string            `json:"requested_by,omitempty"`
	RequestWhy  string            `json:"request_reason,omitempty"`
	RetryOf     string            `json:"retry_of,omitempty"` // the run that it repeats
	Args        map[string]string `json:"args,omitempty"`     // for the handler

	// Traceparent is where the trace of the run is, in the form of W3C's header of that name; only if there is one
	// and it is kept.
	Traceparent string `json:"traceparent,omitempty"`
}

// Attempt is an earlier try of a run that did not end it.
type Attempt struct {
	Attempt      int       `json:"attempt"`
	Instance     string    `json:"instance"`
	FencingToken int64     `json:"fencing_token"`
	StartedAt    time.Time `json:"started_at"`
	EndedAt      time.Time `json:"ended_at"` // when its end was noticed
	Reason       string    `json:"reason"`
	Error        string    `json:"error,omitempty"`
}

// Covers is the last scheduled time that the record stands for.
func (r *Run) Covers() time.Time {
	if r.Until.After(r.ScheduledAt) {
		return r.Until
	}
	return r.ScheduledAt
}

// Times is how many scheduled times the record stands for.
func (r *Run) Times() int64 { return max(r.Count, 1) }

const runIDLayout = "20060102T150405Z"

// RunID is the id of the run for a scheduled time. It is the dedupe key: one time, one id, one record.
func RunID(scheduledAt time.Time) string { return scheduledAt.UTC().Format(runIDLayout) }

// RunIDTime is the time that an id begins with: the scheduled time, or when a run was asked for. Ids of runs
// that people asked for have a suffix after '-'.
func RunIDTime(id string) (time.Time, error) {
	stamp, _, _ := strings.Cut(id, "-")
	t, err := time.Parse(runIDLayout, stamp)
	if err != nil {
		return time.Time{}, fmt.Errorf("run id %q: want a form such as 20261130T010000Z", id)
	}
	return t, nil
}

// encode cuts what is too long and renders the record. Output must be valid UTF-8 for JSON to give it
// back as it was, so what is not becomes U+FFFD here and not silently in a reader.
func (r Run) encode() []byte {
	r.Error = CutHead(r.Error, MaxError)
	r.Output = CutTail(r.Output, MaxOutput)
	if n := len(r.Attempts) - MaxAttempts; n > 0 {
		r.Attempts = r.Attempts[n:]
	}
	o := newObject(recordSize + len(r.Error) + len(r.Output))
	o.text("job", r.Job)
	o.text("id", r.ID)
	o.text("trigger", string(r.Trigger))
	o.time("scheduled_at", r.ScheduledAt)
	o.text("status", string(r.Status))
	o.someText("reason", r.Reason)
	o.someInt("attempt", int64(r.Attempt))
	o.someTime("started_at", r.StartedAt)
	o.someTime("finished_at", r.FinishedAt)
	o.someInt("duration_ms", r.DurationMS)
	o.someInt("lateness_ms", r.LatenessMS)
	o.someInt("timeout_ms", r.TimeoutMS)
	o.someText("instance", r.Instance)
	o.someInt("term", r.Term)
	o.someInt("fencing_token", r.FencingToken)
	o.someText("error", r.Error)
	if r.ExitCode != nil {
		o.rare("exit_code", r.ExitCode)
	}
	o.someText("output", r.Output)
	if r.Progress != nil {
		o.rare("progress", r.Progress)
	}
	o.someInt("retries", int64(r.Retries))
	o.someInt("recoveries", int64(r.Recoveries))
	o.someTime("retry_at", r.RetryAt)
	o.someInt("retry_in_ms", r.RetryInMS)
	if len(r.Attempts) > 0 {
		o.rare("attempts", r.Attempts)
	}
	o.someInt("count", r.Count)
	o.someTime("until", r.Until)
	o.someText("requested_by", r.RequestedBy)
	o.someText("request_reason", r.RequestWhy)
	o.someText("retry_of", r.RetryOf)
	if len(r.Args) > 0 {
		o.rare("args", r.Args)
	}
	o.someText("traceparent", r.Traceparent)
	return o.end()
}

// recordSize is about what a record has beside its texts, in bytes.
const recordSize = 512

// CutHead keeps the first limit bytes of s, marked when cut, never splitting a character.
func CutHead(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	const mark = " [cut]"
	n := limit - len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

// CutTail keeps the last limit bytes of s, marked when cut, never splitting a character.
func CutTail(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	const mark = "[cut] "
	n := len(s) - limit + len(mark)
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return mark + s[n:]
}

// encode renders a record of ours. They hold nothing that JSON cannot say.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("state: %T cannot be encoded: %v", v, err))
	}
	return b
}

// decode parses a stored value of any kind; what names it in the error.
func decode[T any](what string, value []byte) (T, error) {
	var v T
	if err := json.Unmarshal(value, &v); err != nil {
		return v, fmt.Errorf("%s: %w: %w", what, ErrBadRecord, err)
	}
	return v, nil
}

// step refuses a transition that no run may make: a fault of the caller, not of etcd.
func step(from, to RunStatus) error {
	if from.CanBecome(to) {
		return nil
	}
	return fmt.Errorf("a run cannot go from %q to %q", from, to)
}
