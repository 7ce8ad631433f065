package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// Filter says which runs are wanted. Its zero value is all of them.
type Filter struct {
	Statuses []state.RunStatus
	Triggers []state.Trigger
	// Since and Until are the first and the last instant; a zero one is no bound. A run lies where its id does: at
	// its scheduled time or, if somebody asked for it, when he did. A record of several times lies at each of them.
	Since, Until time.Time
}

// takes reports whether r is wanted, but for when it was.
func (f *Filter) takes(r *state.Run) bool {
	return (len(f.Statuses) == 0 || slices.Contains(f.Statuses, r.Status)) &&
		(len(f.Triggers) == 0 || slices.Contains(f.Triggers, r.Trigger)) &&
		(f.Since.IsZero() || !covers(r).Before(f.Since))
}

// selects reports whether not every record is wanted.
func (f *Filter) selects() bool { return len(f.Statuses) > 0 || len(f.Triggers) > 0 }

// none reports whether a job's counters rule out that it has a run that is wanted.
func (f *Filter) none(st *state.JobStatus) bool {
	for _, s := range f.Statuses {
		n := int64(1)
		switch s {
		case state.Succeeded:
			n = st.SucceededTotal
		case state.Failed:
			n = st.FailedTotal
		case state.Canceled:
			n = st.CanceledTotal
		case state.Skipped:
			n = st.SkippedTotal
		case state.Missed:
			n = st.MissedTotal
		case state.Running:
			n = int64(st.Running)
		case state.Pending:
			n = int64(st.Pending)
		}
		if n > 0 {
			return false
		}
	}
	return len(f.Statuses) > 0
}

// start is where a look for runs begins: before, or after the last instant that is wanted.
func (f *Filter) start(before string) string {
	if f.Until.IsZero() {
		return before
	}
	if until := state.RunID(f.Until) + lastOfSecond; before == "" || until < before {
		return until
	}
	return before
}

// lastOfSecond makes of the id of a scheduled time one that comes after all ids of that second.
const lastOfSecond = "-~"

// covers is the last instant at which a record lies.
func covers(r *state.Run) time.Time {
	at, err := state.RunIDTime(r.ID)
	if err != nil {
		return r.Covers()
	}
	if r.Trigger.Scheduled() && r.Until.After(at) {
		return r.Until
	}
	return at
}

// Bounds of a look for runs that a filter takes, in records.
const (
	filterPage = 500
	maxLooked  = 50_000
)

// Matching reads up to n runs of a job that f takes, newest first, beginning before the run id before, or with the
// newest when that is "". next continues it; "" at its end. It looks at no more than 50,000 records, so it may find
// fewer than n and have a next all the same. Its error is a fault of kind NotFound when there is no such job.
func Matching(ctx context.Context, store *state.Store, job, before string, n int, f Filter) (runs []state.Run, next string, err error) {
	look := looking{store: store, filter: f, budget: maxLooked}
	if runs, next, err = look.job(ctx, job, before, n); err != nil {
		return nil, "", err
	}
	if len(runs) == 0 && before == "" { // nothing that is wanted, or no such job
		if _, err := Lookup(ctx, store, job); err != nil {
			return nil, "", err
		}
	}
	return runs, next, nil
}

// looking is a look for runs, with what is left of the records that it may read.
type looking struct {
	store  *state.Store
	filter Filter
	budget int
}

// job looks into one job.
func (l *looking) job(ctx context.Context, job, before string, n int) (runs []state.Run, next string, err error) {
	f := &l.filter
	next = f.start(before)
	for len(runs) < n && l.budget > 0 {
		size := n - len(runs)
		if f.selects() {
			size = filterPage
		}
		page, err := l.store.History(ctx, job, next, min(size, l.budget))
		if err != nil {
			return nil, "", err
		}
		l.budget -= max(len(page.Runs), 1)
		for i := range page.Runs {
			r := &page.Runs[i]
			if f.takes(r) {
				runs = append(runs, *r)
			}
			if at, err := state.RunIDTime(r.ID); err == nil && at.Before(f.Since) {
				return runs, "", nil
			}
			if len(runs) == n && i < len(page.Runs)-1 {
				return runs, r.ID, nil
			}
		}
		if next = page.Next; next == "" {
			break
		}
	}
	return runs, next, nil
}
