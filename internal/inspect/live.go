package inspect

import (
	"context"
	"errors"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// shownLive is how many running runs of a job are looked into.
const shownLive = 10

// LiveRun is a run that is running, and how far it is.
type LiveRun struct {
	ID        string          `json:"id"`
	Attempt   int             `json:"attempt"`
	Instance  string          `json:"instance"`
	StartedAt time.Time       `json:"started_at"`
	RetryAt   *time.Time      `json:"retry_at"` // when its next attempt begins, if it waits for that
	Progress  *state.Progress `json:"progress"`
}

// liveRuns looks into the runs of a job that are running.
func liveRuns(ctx context.Context, store *state.Store, def *state.Definition) ([]LiveRun, error) {
	ids := def.View.Status.Live
	runs := make([]LiveRun, 0, min(len(ids), shownLive))
	for _, id := range ids[:min(len(ids), shownLive)] {
		r, err := liveRun(ctx, store, def.Spec.Name, id)
		if err != nil {
			return nil, err
		}
		if r != nil {
			runs = append(runs, *r)
		}
	}
	return runs, nil
}

// liveRun looks into a run that a job's status says is running; nil when it is not.
func liveRun(ctx context.Context, store *state.Store, job, id string) (*LiveRun, error) {
	r, _, err := store.Run(ctx, job, id)
	switch {
	case errors.Is(err, state.ErrNotFound), errors.Is(err, state.ErrBadRecord), err == nil && r.Status.Final():
		return nil, nil //nolint:nilnil // it has ended just now, or its record was put by hand; the leader puts that right
	case err != nil:
		return nil, err
	}
	progress, err := store.ProgressOf(ctx, job, id)
	if err != nil && !errors.Is(err, state.ErrBadRecord) {
		return nil, err
	}
	return &LiveRun{
		ID: id, Attempt: r.Attempt, Instance: r.Instance, StartedAt: r.StartedAt, RetryAt: unlessZero(r.RetryAt), Progress: progress,
	}, nil
}
