package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// RunDetails is a run with everything around it: its record, in which the progress of a run that goes on is its
// last, and what stands beside it while it does.
type RunDetails struct {
	state.Run

	Checkpoint *Checkpoint    `json:"checkpoint"` // from which a further attempt would go on; null when there is none
	Cancel     *state.Request `json:"cancel"`     // the request to end it; null when nobody has asked
}

// Checkpoint is what is known of a checkpoint without its value, which is the job's own.
type Checkpoint struct {
	Bytes   int       `json:"bytes"` // of the value, as JSON
	Run     string    `json:"run"`   // that wrote it: with checkpoint: job, it may be an earlier one
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
}

// Run reads one run of a job that must be there. Its error is a fault of kind NotFound when it is not; the hint
// says so when it was asked for and nobody has acted on that yet.
func Run(ctx context.Context, store *state.Store, job, id string, now time.Time) (*RunDetails, error) {
	if err := CheckRunID(job, id); err != nil {
		return nil, err
	}
	def, err := Lookup(ctx, store, job)
	if err != nil {
		return nil, err
	}
	r, _, err := store.Run(ctx, job, id)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return nil, noRecord(ctx, store, job, id, now)
	case err != nil:
		return nil, err
	}
	r.Job, r.ID = job, id
	d := &RunDetails{Run: r}
	if r.Status.Final() {
		return d, nil
	}
	return d, d.around(ctx, store, &def.Spec)
}

// around reads what stands beside the record of a run that is not over.
func (d *RunDetails) around(ctx context.Context, store *state.Store, spec *state.Spec) error {
	progress, err := store.ProgressOf(ctx, d.Job, d.ID)
	if err != nil && !errors.Is(err, state.ErrBadRecord) {
		return err
	}
	d.Progress = progress
	note := store.CheckpointNote(d.Job, d.ID, spec.Checkpoint)
	switch c, _, ok, err := store.LoadCheckpoint(ctx, note, spec.UID); {
	case err != nil && !errors.Is(err, state.ErrBadRecord):
		return err
	case ok:
		d.Checkpoint = &Checkpoint{Bytes: len(c.Value), Run: c.Run, Attempt: c.Attempt, At: c.At}
	}
	cancel, err := store.CancelOf(ctx, d.Job, d.ID)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	if err == nil {
		d.Cancel = &cancel.Request
	}
	return nil
}

// noRecord is the error of a run without a record: it may have been asked for only.
func noRecord(ctx context.Context, store *state.Store, job, id string, now time.Time) error {
	if r, err := store.Request(ctx, id); err == nil && r.Job == job {
		return &fault.Error{
			Kind: fault.NotFound,
			Err:  fmt.Errorf("%s of job %s is a %s that nobody has acted on yet; it was asked for %s", id, job, r.Kind, term.Ago(r.At, now)),
			Hint: fmt.Sprintf("etcdcron describe %s shows it; etcdcron cancel %s %s takes it back", job, job, id),
		}
	}
	return NoRun(job, id)
}

// LastRun is the id of the run that a job's output is that of: of those that began, the newest by id. Its error is
// a fault of kind NotFound when there is none.
func LastRun(ctx context.Context, store *state.Store, job string) (string, error) {
	before := ""
	for range lookedAt / describedRuns {
		page, err := store.History(ctx, job, before, describedRuns)
		if err != nil {
			return "", err
		}
		for i := range page.Runs {
			if page.Runs[i].Attempt > 0 {
				return page.Runs[i].ID, nil
			}
		}
		if before = page.Next; before == "" {
			break
		}
	}
	if _, err := Lookup(ctx, store, job); err != nil {
		return "", err
	}
	return "", &fault.Error{
		Kind: fault.NotFound, Err: fmt.Errorf("no run of job %s has begun yet", job), Hint: "etcdcron describe " + job + " says when it is due",
	}
}

// lookedAt is how many records are looked at for the last run that began: a job may be skipped for long.
const lookedAt = 1000
