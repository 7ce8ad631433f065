package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// Finding is what is found at a time: a record, or why there is none. Findings are a contract.
type Finding string

// The findings.
const (
	Recorded      Finding = "recorded"       // there is a record of that time
	Covered       Finding = "covered"        // a record of several times stands for it
	NotScheduled  Finding = "not_scheduled"  // the schedule, as it is now, does not yield it
	NotYet        Finding = "not_yet"        // it has not come, or is not decided yet
	WhilePaused   Finding = "paused"         // the job is paused since before; resuming it makes the record
	BeforeJob     Finding = "before_job"     // the job was made later
	BeforeChange  Finding = "before_change"  // its definition was changed since, and may not have yielded it
	AgedOut       Finding = "aged_out"       // records of that age are not kept
	WithoutRecord Finding = "without_record" // there ought to be a record
)

// At is what there is to say of a job at one time.
type At struct {
	Job      string        `json:"job"`
	Time     time.Time     `json:"time"`
	TimeZone string        `json:"time_zone"`
	Finding  Finding       `json:"finding"`
	Why      string        `json:"why,omitempty"` // there is no record, in words
	Runs     []state.Run   `json:"runs"`          // the record of that time first; then what else began then: by hand, again
	Before   *time.Time    `json:"before"`        // the nearest scheduled times, if it is none
	After    *time.Time    `json:"after"`
	Control  state.Control `json:"control"`
}

// RunOf is the record of the scheduled time itself, or the one that stands for it; nil when there is none.
func (a *At) RunOf() *state.Run {
	if a.Finding != Recorded && a.Finding != Covered {
		return nil
	}
	return &a.Runs[0]
}

// Audit answers whether a job ran at a scheduled time: with its record, or with why there is none. Errors as for
// Lookup.
func Audit(ctx context.Context, store *state.Store, def *state.Definition, at, now time.Time) (*At, error) {
	at = at.UTC()
	a := &At{Job: def.Spec.Name, Time: at, TimeZone: def.Spec.TimeZone, Runs: []state.Run{}, Control: def.Control}
	if at.Nanosecond() == 0 { // others are of no scheduled time
		if err := a.read(ctx, store); err != nil || a.Finding != "" {
			return a, err
		}
	}
	oldest, err := store.OldestRun(ctx, def.Spec.Name)
	if err != nil {
		return nil, err
	}
	return a, a.explain(def, oldest, now)
}

// maxCovering is how many records before a time are looked at for the one that stands for it: what people have
// asked for since may lie between.
const maxCovering = 5000

// read looks for the records of the time: its own, what else began in that second, and the record of several times
// that it is one of. The records of the schedule do not lie over each other, so the first before it decides.
func (a *At) read(ctx context.Context, store *state.Store) error {
	before, own := state.RunID(a.Time)+lastOfSecond, state.RunID(a.Time)
	var others []state.Run
	for looked, size := 0, 20; looked < maxCovering; size = filterPage {
		page, err := store.History(ctx, a.Job, before, size)
		if err != nil {
			return err
		}
		looked += max(len(page.Runs), 1)
		for i := range page.Runs {
			r := &page.Runs[i]
			began, err := state.RunIDTime(r.ID)
			switch {
			case err != nil:
			case r.ID == own:
				a.found(Recorded, r, others)
				return nil
			case began.Equal(a.Time):
				others = append(others, *r)
			case r.Trigger.Scheduled() || r.Trigger == "":
				if !r.Covers().Before(a.Time) {
					a.found(Covered, r, others)
				} else {
					a.Runs = append(a.Runs, others...)
				}
				return nil
			}
		}
		if before = page.Next; before == "" {
			break
		}
	}
	a.Runs = append(a.Runs, others...)
	return nil
}

func (a *At) found(f Finding, r *state.Run, others []state.Run) {
	a.Finding = f
	a.Runs = append([]state.Run{*r}, others...)
}

// explain says why there is no record. oldest is the time of the oldest record that there is; zero when there is
// none.
func (a *At) explain(def *state.Definition, oldest, now time.Time) error {
	spec := &def.Spec
	if def.Broken != nil {
		return InvalidJob(spec.Name, def.Broken)
	}
	schedule, err := cronrunner.ParseSchedule(spec.Schedule, spec.TimeZone)
	if err != nil {
		return InvalidJob(spec.Name, err)
	}
	due := schedule.Within(spec.Start, spec.End)
	_, last, count := due.Between(a.Time.Add(-time.Second), a.Time)
	yields := count > 0 && last.Equal(a.Time)
	changed := spec.UpdatedAt.After(spec.CreatedAt) && a.Time.Before(spec.UpdatedAt)
	switch {
	case !spec.CreatedAt.IsZero() && a.Time.Before(spec.CreatedAt):
		a.Finding, a.Why = BeforeJob, "the job was made "+term.Instant(spec.CreatedAt)
	case !yields:
		a.notScheduled(spec, schedule, due, changed)
	case a.Time.After(def.View.Status.Cursor) && def.Control.Paused && !a.Time.Before(def.Control.At) && !a.Time.After(now):
		a.Finding, a.Why = WhilePaused, "the job is "+Paused(&def.Control, now)+"; when it is resumed, the time is recorded as skipped"
	case a.Time.After(def.View.Status.Cursor) && spec.Retired:
		a.Finding, a.Why = BeforeChange, "the job is retired since "+term.Instant(spec.UpdatedAt)+": the leader does not have it any more"
	case a.Time.After(def.View.Status.Cursor):
		a.notYet(spec, cronrunner.RunsLeft(spec, &def.View.Status), now)
		if def.Control.Paused {
			a.Why += "; the job is " + Paused(&def.Control, now)
		}
	case changed:
		a.Finding = BeforeChange
		a.Why = "the job's definition was changed " + term.Instant(spec.UpdatedAt) + ", and may not have had that time before; what was due before a change is not caught up"
	case oldest.IsZero() || a.Time.Before(oldest):
		a.Finding, a.Why = AgedOut, "no record of that age is kept"
		if !oldest.IsZero() {
			a.Why += "; the oldest is of " + term.Instant(oldest)
		}
	default:
		a.Finding, a.Why = WithoutRecord, "there ought to be a record, and there is none: it was deleted, or the job's cursor was moved"
	}
	return nil
}

// notScheduled says which times are near one that is none of the schedule.
func (a *At) notScheduled(spec *state.Spec, schedule, due *cronrunner.Schedule, changed bool) {
	a.Finding, a.Why = NotScheduled, "it is not a scheduled time"
	_, last, count := schedule.Between(a.Time.Add(-time.Second), a.Time)
	switch outside := count > 0 && last.Equal(a.Time); {
	case outside && !spec.Start.IsZero() && a.Time.Before(spec.Start):
		a.Why = "the job's schedule begins " + term.Instant(spec.Start)
	case outside:
		a.Why = "the job's schedule ended " + term.Instant(spec.End)
	}
	if changed {
		a.Why += fmt.Sprintf(" of the schedule as it is now; the definition was changed %s", term.Instant(spec.UpdatedAt))
	}
	if _, before, count := due.Between(a.Time.Add(-farBack), a.Time); count > 0 {
		a.Before = &before
	}
	if after := due.Next(a.Time); !after.IsZero() {
		a.After = &after
	}
}

// farBack is how far in the past a scheduled time is looked for that could have been meant.
const farBack = 10 * 366 * 24 * time.Hour

// notYet says why a time of the schedule that is after the cursor is not decided.
func (a *At) notYet(spec *state.Spec, left int64, now time.Time) {
	due := a.Time.Add(time.Duration(spec.Delay))
	a.Finding = NotYet
	switch {
	case left == 0:
		a.Why = fmt.Sprintf("the job has had the %d runs that it may have", spec.MaxRuns)
	case due.After(now) && spec.Delay > 0:
		a.Why = "it is due " + term.Instant(due) + ", " + term.Relative(due, now) + ": the job's part of the jitter is " + term.Elapsed(time.Duration(spec.Delay))
	case due.After(now):
		a.Why = "it is due " + term.Relative(due, now)
	default:
		a.Why = "the leader has not decided it yet; if nobody leads, it is decided when somebody does"
	}
}
