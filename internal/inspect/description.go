package inspect

import (
	"context"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// How much a description has.
const (
	describedTimes = 5
	describedRuns  = 5
)

// describedWindows are those of a description's outcomes.
var describedWindows = []time.Duration{24 * time.Hour, 7 * 24 * time.Hour}

// Description is a job with everything around it.
type Description struct {
	Definition state.Spec       `json:"definition"`
	Status     state.JobStatus  `json:"status"`
	Control    state.Control    `json:"control"`
	Requests   []state.Request  `json:"requests"` // not acted on yet
	Next       []time.Time      `json:"next"`     // none when it will not run: paused, retired, invalid
	Live       []LiveRun        `json:"live"`     // the runs that are running
	Runs       []state.Run      `json:"runs"`
	Outcomes   []state.Outcomes `json:"outcomes"` // of the last 24 hours, and of the last 7 days
	Invalid    *string          `json:"invalid"`
}

// Describe reads a job with everything around it. Errors as for Lookup.
func Describe(ctx context.Context, store *state.Store, name string, now time.Time) (*Description, error) {
	d, err := Brief(ctx, store, name, now)
	if err != nil {
		return nil, err
	}
	d.Outcomes, err = Outcomes(ctx, store, name, now)
	return d, err
}

// Outcomes counts how the runs of a job have ended in the last 24 hours, and in the last 7 days. It may read a week of
// records.
func Outcomes(ctx context.Context, store *state.Store, name string, now time.Time) ([]state.Outcomes, error) {
	return store.Outcomes(ctx, name, now, describedWindows...)
}

// Brief is Describe without the outcomes, for who asks often.
func Brief(ctx context.Context, store *state.Store, name string, now time.Time) (*Description, error) {
	def, err := Lookup(ctx, store, name)
	if err != nil {
		return nil, err
	}
	page, err := store.History(ctx, name, "", describedRuns)
	if err != nil {
		return nil, err
	}
	requests, err := requestsOf(ctx, store, name)
	if err != nil {
		return nil, err
	}
	live, err := liveRuns(ctx, store, &def)
	if err != nil {
		return nil, err
	}
	d := Description{
		Definition: def.Spec, Status: def.View.Status, Control: def.Control, Live: live,
		Requests: requests, Next: []time.Time{}, Runs: append([]state.Run{}, page.Runs...), Outcomes: []state.Outcomes{},
	}
	outlook, err := OutlookOf(def)
	switch {
	case err != nil:
		d.Invalid = unlessZero(err.Error())
	case !def.Control.Paused && !def.Spec.Retired:
		d.Next = outlook.Times(now, describedTimes)
	}
	return &d, nil
}

// Bounds of what is shown of the requests of a job.
const (
	requestsAtOnce = 500
	shownRequests  = 100
)

// requestsOf are what was asked of a job and not acted on yet, the oldest first, and cancels last: the first hundred
// of them, since there may be very many.
func requestsOf(ctx context.Context, store *state.Store, job string) ([]state.Request, error) {
	ofJob := []state.Request{}
	for after, more := "", true; more; more = after != "" {
		some, next, err := store.RequestsAfter(ctx, after, requestsAtOnce)
		if err != nil {
			return nil, err
		}
		for i := range some {
			if some[i].Job != job {
				continue
			}
			if ofJob = append(ofJob, some[i].Request); len(ofJob) == shownRequests {
				return ofJob, nil
			}
		}
		after = next
	}
	return ofJob, nil
}
