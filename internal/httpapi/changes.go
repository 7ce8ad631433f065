package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/state"
)

// change reads what every change has: the job of its path, no parameters, and its body.
func (c *call) change(body any) (job string, err error) {
	if job, err = c.job(); err == nil {
		err = queryOf(c).end()
	}
	if err == nil {
		err = c.decode(body)
	}
	return job, err
}

func trigger(ctx context.Context, c *call) (outcome, error) {
	var body struct {
		noted

		Args map[string]string `json:"args"`
	}
	job, err := c.change(&body)
	if err != nil {
		return outcome{}, err
	}
	r, err := steer.Trigger(ctx, c.etcd.store, job, body.Args, c.note(body.noted), c.now)
	return requested(&r), err
}

func retry(ctx context.Context, c *call) (outcome, error) {
	var body noted
	job, err := c.change(&body)
	if err != nil {
		return outcome{}, err
	}
	r, err := steer.Retry(ctx, c.etcd.store, job, c.PathValue("run"), c.note(body), c.now)
	return requested(&r), err
}

// requested is a run that was asked for and that nobody has acted on yet.
func requested(r *state.Request) outcome {
	return outcome{
		status:   http.StatusAccepted,
		body:     steer.Asked{Job: r.Job, ID: r.ID, Status: steer.Requested},
		location: "/v1/jobs/" + r.Job + "/runs/" + r.ID,
	}
}

func backfill(ctx context.Context, c *call) (outcome, error) {
	var body struct {
		noted

		From   time.Time `json:"from"`
		To     time.Time `json:"to"`
		DryRun bool      `json:"dry_run"`
	}
	job, err := c.change(&body)
	if err != nil {
		return outcome{}, err
	}
	if body.From.IsZero() || body.To.IsZero() {
		return outcome{}, &fault.Error{
			Kind: fault.BadInput, Err: errors.New("a backfill needs from and to: the first and the last instant of the range"),
			Hint: `a body such as {"from": "2026-11-01T00:00:00Z", "to": "2026-11-07T23:59:59Z", "dry_run": true}`,
		}
	}
	plan, err := steer.PlanBackfill(ctx, c.etcd.store, job, body.From, body.To, c.now)
	switch {
	case err != nil:
		return outcome{}, err
	case body.DryRun:
		return outcome{status: http.StatusOK, body: plan.Preview()}, nil
	}
	r, err := plan.Submit(ctx, c.note(body.noted), c.now)
	return outcome{status: http.StatusAccepted, body: plan.Asked(&r)}, err
}

func pause(ctx context.Context, c *call) (outcome, error)  { return control(ctx, c, steer.Pause) }
func resume(ctx context.Context, c *call) (outcome, error) { return control(ctx, c, steer.Resume) }

func control(
	ctx context.Context, c *call,
	do func(context.Context, *state.Store, string, steer.Note) (state.Definition, steer.Controlled, error),
) (outcome, error) {
	var body noted
	job, err := c.change(&body)
	if err != nil {
		return outcome{}, err
	}
	_, now, err := do(ctx, c.etcd.store, job, c.note(body))
	return outcome{status: http.StatusOK, body: now}, err
}

func cancel(ctx context.Context, c *call) (outcome, error) {
	var body noted
	job, err := c.change(&body)
	if err != nil {
		return outcome{}, err
	}
	id := c.PathValue("run")
	_, withdrawn, err := steer.Cancel(ctx, c.etcd.store, job, id, c.note(body), c.now)
	switch {
	case err != nil:
		return outcome{}, err
	case withdrawn != nil:
		return outcome{status: http.StatusOK, body: steer.Asked{Job: job, ID: id, Status: steer.Withdrawn}}, nil
	}
	// It may have ended by now, or be about to: what is known is how it stands.
	run, _, err := c.etcd.store.Run(ctx, job, id)
	if errors.Is(err, state.ErrNotFound) {
		return outcome{}, inspect.NoRun(job, id)
	}
	return outcome{status: http.StatusAccepted, body: steer.Came(&run), location: "/v1/jobs/" + job + "/runs/" + id}, err
}

// resigning is a leader that was asked to hand over.
type resigning struct {
	Instance string `json:"instance"`
	Term     int64  `json:"term"`
	Status   string `json:"status"`
}

func resign(ctx context.Context, c *call) (outcome, error) {
	var body struct {
		noted

		Term int64 `json:"term"`
	}
	err := queryOf(c).end()
	if err == nil {
		err = c.decode(&body)
	}
	if err != nil {
		return outcome{}, err
	}
	info, _, err := steer.Resign(ctx, c.etcd.client, c.etcd.store, body.Term, c.note(body.noted))
	return outcome{status: http.StatusAccepted, body: resigning{Instance: info.Instance, Term: info.Term, Status: steer.Requested}}, err
}
