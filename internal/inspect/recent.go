package inspect

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/etcdcron/etcdcron/state"
)

// How many jobs are looked into at once, and before it is asked again whether that is enough.
const (
	recentAtOnce = 8
	recentBatch  = 32
)

// Recent reads the n newest runs of all jobs that f takes, newest first. The jobs are looked into in the order in
// which their statuses say that something became of them, and not further than it takes: those whose last run is
// older than the n-th found are left alone, as are those whose counters say that they have none that is wanted.
// all is false when it has looked at 50,000 records and there may be more.
//
// A run that was asked for and skipped leaves no time in its job's status: one of a job with which nothing else
// happened, and with n others since, may be left out.
func Recent(ctx context.Context, store *state.Store, n int, f Filter) (runs []state.Run, all bool, err error) {
	views, err := store.Views(ctx)
	if err != nil {
		return nil, false, err
	}
	jobs := candidates(views, n, &f)
	budget := maxLooked
	for len(jobs) > 0 && budget > 0 {
		batch := jobs[:min(len(jobs), recentBatch)]
		jobs = jobs[len(batch):]
		found, looked, err := recentOf(ctx, store, batch, n, f, max(budget/len(batch), filterPage))
		if err != nil {
			return nil, false, err
		}
		budget -= looked
		runs = newest(append(runs, found...), n)
		if len(runs) == n && len(jobs) > 0 && jobs[0].last <= runs[n-1].ID {
			return runs, true, nil
		}
	}
	return runs, len(jobs) == 0 && budget > 0, nil
}

// candidate is a job that may have runs that are wanted; last is no less than the id of the newest.
type candidate struct{ job, last string }

// anyID is greater than every id.
const anyID = "~"

// candidates are the jobs that may have runs that are wanted, those with the newest first.
func candidates(views []state.JobView, n int, f *Filter) []candidate {
	slices.SortFunc(views, func(a, b state.JobView) int { return cmp.Compare(b.Revision, a.Revision) })
	jobs := make([]candidate, 0, len(views))
	since := ""
	if !f.Since.IsZero() {
		since = state.RunID(f.Since)
	}
	for i := range views {
		v := &views[i]
		if v.Broken == nil && f.none(&v.Status) {
			continue
		}
		last := lastID(&v.Status)
		if i < n || v.Broken != nil {
			last = anyID // what was written last may be what its status keeps no time of
		}
		if last >= since {
			jobs = append(jobs, candidate{job: v.Job, last: last})
		}
	}
	slices.SortStableFunc(jobs, func(a, b candidate) int { return cmp.Compare(b.last, a.last) })
	return jobs
}

// lastID is no less than the ids of the runs that a status accounts for.
func lastID(st *state.JobStatus) string {
	last := st.LastRunID
	if !st.Cursor.IsZero() {
		last = max(last, state.RunID(st.Cursor))
	}
	for _, ids := range [][]string{st.Live, st.Queue} {
		for _, id := range ids {
			last = max(last, id)
		}
	}
	return last
}

// recentOf reads the newest runs of each of some jobs, and says how many records it has looked at.
func recentOf(ctx context.Context, store *state.Store, jobs []candidate, n int, f Filter, budget int) (runs []state.Run, looked int, err error) {
	var (
		mu    sync.Mutex
		count atomic.Int64
	)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(recentAtOnce)
	for _, c := range jobs {
		group.Go(func() error {
			look := looking{store: store, filter: f, budget: budget}
			found, _, err := look.job(ctx, c.job, "", n)
			count.Add(int64(budget - look.budget))
			mu.Lock()
			defer mu.Unlock()
			runs = append(runs, found...)
			return err
		})
	}
	err = group.Wait()
	return runs, int(count.Load()), err
}

// newest are the n newest of runs, newest first.
func newest(runs []state.Run, n int) []state.Run {
	slices.SortFunc(runs, func(a, b state.Run) int {
		return cmp.Or(cmp.Compare(b.ID, a.ID), cmp.Compare(a.Job, b.Job))
	})
	return runs[:min(len(runs), n)]
}
