package steer

import (
	"context"
	"errors"
	"time"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

// Cancel takes back a request that nobody has acted on yet, and otherwise asks for a run to be ended. It returns
// the job as it stands, and the request that was taken back; nil when the end of a run was asked for.
func Cancel(ctx context.Context, store *state.Store, job, id string, n Note, now time.Time) (state.Definition, *state.Standing, error) {
	if err := inspect.CheckRunID(job, id); err != nil {
		return state.Definition{}, nil, err
	}
	def, err := inspect.Lookup(ctx, store, job)
	if err != nil {
		return def, nil, err
	}
	if withdrawn, err := withdraw(ctx, store, job, id); withdrawn != nil || err != nil {
		return def, withdrawn, err
	}
	_, err = submit(ctx, store, def, state.Request{Kind: state.AskCancel, Run: id, By: n.By, Reason: n.Reason}, now)
	return def, nil, err
}

// withdraw takes back a request that nobody has acted on yet, or what is left of a backfill, and returns it as it
// stood; nil when there is none.
func withdraw(ctx context.Context, store *state.Store, job, id string) (*state.Standing, error) {
	r, err := store.Request(ctx, id)
	if err == nil && r.Job == job {
		if r, err = store.Withdraw(ctx, id); err != nil && ctx.Err() != nil {
			return nil, unknown(ctx, "request "+id+" was taken back", "etcdcron describe "+job+" shows what was asked for")
		}
	}
	switch {
	case errors.Is(err, state.ErrNotFound), err == nil && r.Job != job:
		return nil, nil //nolint:nilnil // or acted on meanwhile: it is a run now
	case err != nil:
		return nil, err
	}
	return &r, nil
}
