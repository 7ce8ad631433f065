package httpapi

import (
	"context"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

// How many runs an answer has; each may have 16 KiB of output.
const (
	someRuns = 50
	mostRuns = 200
)

// runPage is a part of a job's history, newest first.
type runPage struct {
	Runs []state.Run `json:"runs"`
	Next string      `json:"next"` // the cursor of the next part; "" at the end
}

func listRuns(ctx context.Context, c *call) (any, error) {
	job, err := c.job()
	if err != nil {
		return nil, err
	}
	q := queryOf(c)
	limit, before := q.number("limit", someRuns, mostRuns), q.text("cursor")
	f := inspect.Filter{
		Statuses: words(q, "status", state.Pending, state.Running, state.Succeeded, state.Failed, state.Skipped, state.Missed, state.Canceled),
		Triggers: words(q, "trigger", state.BySchedule, state.ByCatchUp, state.ByHand, state.ByRetry, state.ByBackfill),
		Since:    q.instant("from"), Until: q.instant("to"),
	}
	if before != "" {
		if _, err := state.RunIDTime(before); err != nil {
			q.fail(err)
		}
	}
	if err := q.end(); err != nil {
		return nil, err
	}
	runs, next, err := inspect.Matching(ctx, c.etcd.store, job, before, limit, f)
	if runs == nil {
		runs = []state.Run{}
	}
	return runPage{Runs: runs, Next: next}, err
}

// runDetails is a run with everything around it.
type runDetails struct {
	*inspect.RunDetails

	Lock *state.Lock `json:"lock"` // that it holds; null when it holds none
}

func showRun(ctx context.Context, c *call) (any, error) {
	job, err := c.job()
	if err == nil {
		err = queryOf(c).end()
	}
	if err != nil {
		return nil, err
	}
	d, err := inspect.Run(ctx, c.etcd.store, job, c.PathValue("run"), c.now)
	if err != nil {
		return nil, err
	}
	lock, err := c.etcd.store.LockHeld(ctx, job, d.ID)
	return runDetails{RunDetails: d, Lock: lock}, err
}
