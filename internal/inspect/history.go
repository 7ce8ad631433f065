package inspect

import (
	"context"

	"github.com/etcdcron/etcdcron/state"
)

// History reads up to n runs of a job, newest first, beginning before the run id before, or with the newest when
// that is "". next continues it; "" at its end. Its error is a fault of kind NotFound when there is no such job.
func History(ctx context.Context, store *state.Store, job, before string, n int) (runs []state.Run, next string, err error) {
	next = before
	for len(runs) < n {
		page, err := store.History(ctx, job, next, n-len(runs))
		if err != nil {
			return nil, "", err
		}
		runs = append(runs, page.Runs...)
		if next = page.Next; next == "" {
			break
		}
	}
	if len(runs) == 0 && before == "" { // a job that has not run yet, or none at all
		if _, err := Lookup(ctx, store, job); err != nil {
			return nil, "", err
		}
	}
	return runs, next, nil
}
