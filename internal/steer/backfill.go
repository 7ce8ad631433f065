package steer

import (
	"context"
	"time"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

// previewedRuns is how many times a preview lists.
const previewedRuns = 5

// Backfill is one that is planned: nothing is asked for yet.
type Backfill struct {
	Stretch

	From, To time.Time

	store *state.Store
	def   state.Definition
}

// PlanBackfill says what a backfill of a job would run: its scheduled times from one instant to another, both
// included, as far as the schedule itself has run them. Its error is that of [CheckRange] or [StretchOf], or that
// there is no such job, or no valid one.
func PlanBackfill(ctx context.Context, store *state.Store, job string, from, to, now time.Time) (*Backfill, error) {
	if err := CheckRange(from, to, now, ""); err != nil {
		return nil, err
	}
	def, err := inspect.Lookup(ctx, store, job)
	switch {
	case err != nil:
		return nil, err
	case def.Broken != nil:
		return nil, inspect.InvalidJob(job, def.Broken)
	}
	// With jitter what was scheduled last may not be due yet: the schedule itself runs it.
	if due := now.Add(-time.Duration(def.Spec.Delay)); to.After(due) {
		to = due.Truncate(time.Second)
	}
	s, err := StretchOf(&def.Spec, from, to)
	if err != nil {
		return nil, err
	}
	return &Backfill{Stretch: s, From: from, To: to, store: store, def: def}, nil
}

// Preview is what a backfill would run.
type Preview struct {
	Job   string      `json:"job"`
	Total int64       `json:"total"`
	First time.Time   `json:"first"`
	Last  time.Time   `json:"last"`
	Times []time.Time `json:"times"` // the first few
}

// Preview is what it would run.
func (b *Backfill) Preview() Preview {
	return Preview{Job: b.def.Spec.Name, Total: b.Total, First: b.First, Last: b.Last, Times: b.Times(previewedRuns)}
}

// Refused says why it cannot be asked for as the job stands now.
func (b *Backfill) Refused(ctx context.Context, now time.Time) error {
	return startable(ctx, b.store, b.def, now)
}

// Submit asks for it.
func (b *Backfill) Submit(ctx context.Context, n Note, now time.Time) (state.Request, error) {
	if err := b.Refused(ctx, now); err != nil {
		return state.Request{}, err
	}
	return submit(ctx, b.store, b.def, state.Request{
		Kind: state.AskBackfill, By: n.By, Reason: n.Reason, From: b.From, To: b.To, Total: b.Total,
	}, now)
}

// AskedBackfill is a backfill as it was asked for.
type AskedBackfill struct {
	Asked

	Total int64     `json:"total"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Asked is the backfill as it was asked for with r.
func (b *Backfill) Asked(r *state.Request) AskedBackfill {
	return AskedBackfill{Asked{Job: r.Job, ID: r.ID, Status: Requested}, b.Total, b.First, b.Last}
}
