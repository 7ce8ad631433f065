package steer

import (
	"context"
	"errors"
	"time"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

// Controlled is what a job was told.
type Controlled struct {
	Job    string    `json:"job"`
	Paused bool      `json:"paused"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Pause has a job start nothing more until it is resumed. It returns the job as it was before.
func Pause(ctx context.Context, store *state.Store, job string, n Note) (was state.Definition, now Controlled, err error) {
	if was, err = inspect.Lookup(ctx, store, job); err != nil {
		return was, Controlled{}, err
	}
	c, err := store.Pause(ctx, job, n.By, n.Reason)
	return controlled(ctx, store, was, c, err, "paused")
}

// Resume has a job go on. One that is not paused stays as it is. It returns the job as it was before.
func Resume(ctx context.Context, store *state.Store, job string, n Note) (was state.Definition, now Controlled, err error) {
	if was, err = inspect.Lookup(ctx, store, job); err != nil {
		return was, Controlled{}, err
	}
	c := was.Control
	if c.Paused || was.Broken != nil {
		c, err = store.Resume(ctx, job, n.By, n.Reason)
	}
	return controlled(ctx, store, was, c, err, "resumed")
}

func controlled(
	ctx context.Context, store *state.Store, was state.Definition, c state.Control, err error, verb string,
) (state.Definition, Controlled, error) {
	job := was.Spec.Name
	switch {
	case errors.Is(err, state.ErrNotFound): // removed since we looked
		err = inspect.NoJob(ctx, store, job)
	case err != nil && ctx.Err() != nil:
		err = unknown(ctx, "job "+job+" was "+verb, "etcdcron describe "+job+" shows it")
	}
	return was, Controlled{Job: job, Paused: c.Paused, Reason: c.Reason, By: c.By, At: c.At}, err
}
