package inspect

import (
	"context"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// JobFilter says which jobs are wanted. Its zero value is all that are not retired.
type JobFilter struct {
	Name    string            // part of the name, whatever its case
	Paused  *bool             // paused, or not; nil for either, as below
	Running *bool             // with a run that is running
	Failing *bool             // whose last run that was over did not succeed
	Labels  map[string]string // all of them, with these values
	Retired bool              // those that the leader no longer has as well
}

// takes reports whether a job is wanted, but for its name.
func (f *JobFilter) takes(def *state.Definition) bool {
	is := func(wanted *bool, so bool) bool { return wanted == nil || *wanted == so }
	for name, value := range f.Labels {
		if has, ok := def.Spec.Labels[name]; !ok || has != value {
			return false
		}
	}
	st := &def.View.Status
	return (f.Retired || !def.Spec.Retired) && is(f.Paused, def.Control.Paused) && is(f.Running, st.Running > 0) &&
		is(f.Failing, st.ConsecutiveFailures > 0)
}

const (
	jobsAtOnce    = 1000   // jobs that are read at once
	maxLookedJobs = 10_000 // and in one call
)

// Jobs reads up to limit jobs that f takes, by name, beginning after a name, or with the first when that is "". next
// continues them; "" at the end. It looks at no more than 10,000 jobs, so it may find fewer than limit and have a
// next all the same.
func Jobs(ctx context.Context, store *state.Store, after string, limit int, f JobFilter, now time.Time) (jobs []Job, next string, err error) {
	jobs, next = []Job{}, after
	size := jobsAtOnce
	if f.Name == "" && f.Paused == nil && f.Running == nil && f.Failing == nil && len(f.Labels) == 0 {
		size = min(limit+1, jobsAtOnce) // most are wanted
	}
	for looked := 0; looked < maxLookedJobs; {
		names, more, err := store.JobsAfter(ctx, next, size)
		if err != nil {
			return nil, "", err
		}
		looked += len(names)
		named := names[:0:0]
		for _, name := range names {
			if f.Name == "" || strings.Contains(strings.ToLower(name), strings.ToLower(f.Name)) {
				named = append(named, name)
			}
		}
		defs, err := store.Definitions(ctx, named)
		if err != nil {
			return nil, "", err
		}
		for _, name := range named {
			def := defs[name]
			def.Spec.Name = name // also when the spec is broken
			if !f.takes(&def) {
				continue
			}
			if len(jobs) == limit {
				return jobs, jobs[limit-1].Name, nil
			}
			jobs = append(jobs, Summarize(def, now))
		}
		if next = more; next == "" {
			break
		}
	}
	return jobs, next, nil
}
