package steer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// Note is who asks, and why.
type Note struct{ By, Reason string }

// Asked is what came of a request so far.
type Asked struct {
	Job    string `json:"job"`
	ID     string `json:"id"`
	Status string `json:"status"` // of the run; what stands below before there is one
	Reason string `json:"reason,omitempty"`
}

// Where a request stands that is no run.
const (
	Requested = "requested" // nobody has acted on it yet
	Withdrawn = "withdrawn"
)

// Came is what came of a request when it has become a run.
func Came(r *state.Run) Asked {
	return Asked{Job: r.Job, ID: r.ID, Status: string(r.Status), Reason: r.Reason}
}

// submit makes a request.
func submit(ctx context.Context, store *state.Store, def state.Definition, r state.Request, now time.Time) (state.Request, error) {
	r.Job = def.Spec.Name
	made, err := store.Submit(ctx, r)
	if err != nil && ctx.Err() != nil {
		return made, unknown(ctx, fmt.Sprintf("the %s was asked for", r.Kind), "etcdcron describe "+r.Job+" shows what was asked for")
	}
	return made, refusal(ctx, store, def, r.Run, now, err)
}

// unknown is the error of a change whose ctx has ended before etcd has answered.
func unknown(ctx context.Context, what, hint string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &fault.Error{Kind: fault.UnknownOutcome, Err: fmt.Errorf("it is not known whether %s: etcd has not answered", what), Hint: hint}
	}
	return &fault.Error{Kind: fault.Interrupted, Err: fmt.Errorf("interrupted; it is not known whether %s", what), Hint: hint}
}

// startable says why nothing can be asked for that starts a run.
func startable(ctx context.Context, store *state.Store, def state.Definition, now time.Time) error {
	switch {
	case def.Broken != nil:
		return inspect.InvalidJob(def.Spec.Name, def.Broken)
	case def.Spec.Retired:
		return refusal(ctx, store, def, "", now, state.ErrRetired)
	case def.Control.Paused:
		return refusal(ctx, store, def, "", now, state.ErrPaused)
	}
	return nil
}

// refusal is why a request was not made, in words.
func refusal(ctx context.Context, store *state.Store, def state.Definition, run string, now time.Time, err error) error {
	job := def.Spec.Name
	switch {
	case errors.Is(err, state.ErrPaused):
		text := "paused"
		if def.Control.Paused { // when we looked
			text = inspect.Paused(&def.Control, now)
		}
		return &fault.Error{Kind: fault.Paused, Err: fmt.Errorf("job %s is %s", job, text), Hint: "etcdcron resume " + job}
	case errors.Is(err, state.ErrRetired):
		return &fault.Error{
			Kind: fault.Retired, Err: fmt.Errorf("job %s is retired: the leader no longer has it", job),
			Hint: "put it back into the jobs file, and start serve again",
		}
	case errors.Is(err, state.ErrRunOver):
		return overAlready(ctx, store, job, run, now)
	case errors.Is(err, state.ErrRunNotOver):
		return &fault.Error{
			Kind: fault.RunNotOver, Err: fmt.Errorf("run %s of job %s is not over yet", run, job),
			Hint: fmt.Sprintf("again when it is; etcdcron cancel %s %s ends it now", job, run),
		}
	case errors.Is(err, state.ErrNotFound) && run != "":
		return inspect.NoRun(job, run)
	}
	return err
}

// overAlready is the error of canceling a run that is over.
func overAlready(ctx context.Context, store *state.Store, job, id string, now time.Time) error {
	how := ""
	if run, _, err := store.Run(ctx, job, id); err == nil && run.Status.Final() {
		how = ": it " + strings.TrimSpace(inspect.Ended(&run)+" "+term.Ago(run.FinishedAt, now))
	}
	return &fault.Error{
		Kind: fault.RunOver, Err: fmt.Errorf("run %s of job %s is over already%s", id, job, how),
		Hint: fmt.Sprintf("etcdcron retry %s %s does it once more", job, id),
	}
}
