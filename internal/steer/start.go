package steer

import (
	"context"
	"time"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

// Trigger asks for a run of a job now, with arguments for its handler. The request's id is that of the run.
func Trigger(ctx context.Context, store *state.Store, job string, args map[string]string, n Note, now time.Time) (state.Request, error) {
	return start(ctx, store, job, state.Request{Kind: state.AskTrigger, Args: args, By: n.By, Reason: n.Reason}, now)
}

// Retry asks for a run that is over to be done once more. The request's id is that of the new run.
func Retry(ctx context.Context, store *state.Store, job, run string, n Note, now time.Time) (state.Request, error) {
	if err := inspect.CheckRunID(job, run); err != nil {
		return state.Request{}, err
	}
	return start(ctx, store, job, state.Request{Kind: state.AskRetry, Run: run, By: n.By, Reason: n.Reason}, now)
}

// start asks for a run of a job that must be one that can start.
func start(ctx context.Context, store *state.Store, job string, r state.Request, now time.Time) (state.Request, error) {
	def, err := inspect.Lookup(ctx, store, job)
	if err == nil {
		err = startable(ctx, store, def, now)
	}
	if err != nil {
		return r, err
	}
	return submit(ctx, store, def, r, now)
}
