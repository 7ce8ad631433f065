package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// Lookup reads one job that must be there. Its error is a fault of kind NotFound, with the name that was probably
// meant, when it is not.
func Lookup(ctx context.Context, store *state.Store, name string) (state.Definition, error) {
	def, err := store.Job(ctx, name)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return def, NoJob(ctx, store, name)
	case err != nil:
		return def, err
	}
	def.Spec.Name = name // also when it is broken
	return def, nil
}

// NoJob is the error of a job that is not there.
func NoJob(ctx context.Context, store *state.Store, name string) error {
	f := &fault.Error{
		Kind: fault.NotFound, Err: fmt.Errorf("there is no job %q under %s", name, store.Keys().Root()), Hint: "etcdcron jobs lists them",
	}
	names, err := store.JobNames(ctx)
	if err != nil {
		return f // the hint is not worth another error
	}
	if closest := term.Closest(name, slices.Values(names)); closest != "" {
		f.Hint = "did you mean " + closest + "? " + f.Hint
	}
	return f
}

// NoRun is the error of a run, or a request, that is not there.
func NoRun(job, id string) error {
	return &fault.Error{
		Kind: fault.NotFound, Err: fmt.Errorf("job %s has no run and no request %s", job, id),
		Hint: fmt.Sprintf("etcdcron history %s lists its runs, etcdcron describe %s what was asked for", job, job),
	}
}

// InvalidJob is the error of a job that cannot be run as it stands.
func InvalidJob(job string, why error) error {
	return &fault.Error{Kind: fault.Invalid, Err: fmt.Errorf("job %s is invalid: %w", job, why)}
}

// CheckRunID says why id can be no run's.
func CheckRunID(job, id string) error {
	if _, err := state.RunIDTime(id); err != nil {
		return &fault.Error{Kind: fault.BadInput, Err: err, Hint: "an id from the column RUN of: etcdcron history " + job}
	}
	return nil
}
