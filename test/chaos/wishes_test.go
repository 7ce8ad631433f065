package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/chaos/checker"
)

// by is who asks.
const by = "chaos"

// ask asks for things until ctx ends: triggers, pauses, resumes, cancels, retries and backfills.
func (b *bed) ask(ctx context.Context, r *rand.Rand) {
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			spaces := b.populated()
			b.wish(ctx, r, spaces[r.IntN(len(spaces))])
		case <-ctx.Done():
			return
		}
	}
}

// wish asks something of a job. What is refused was no good idea.
func (b *bed) wish(ctx context.Context, r *rand.Rand, sp *space) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	chosen, what, which := &sp.jobs[r.IntN(len(sp.jobs))], r.IntN(7), r.IntN(1000)
	if r.IntN(2) == 0 { // those of a burst are many
		chosen = &sp.jobs[r.IntN(min(len(sp.jobs), 15))]
	}
	job := chosen.Name
	def, err := sp.store.Job(ctx, job)
	if err != nil {
		return
	}
	ask := state.Request{Job: job, By: by}
	switch what {
	case 0:
		_, _ = sp.store.Pause(ctx, job, by, "")
		return
	case 1, 2:
		_, _ = sp.store.Resume(ctx, job, by, "")
		return
	case 3:
		ask.Kind = state.AskTrigger
	case 4:
		ask.Kind, ask.Run = state.AskRetry, def.View.Status.LastRunID
	case 5:
		runs := slices.Concat(def.View.Status.Live, def.View.Status.Queue)
		if len(runs) == 0 {
			return
		}
		ask.Kind, ask.Run = state.AskCancel, runs[which%len(runs)]
	case 6:
		if chosen.Work.Max > 2*time.Second { // it would not come to an end
			return
		}
		now := time.Now().Truncate(time.Second)
		ask.Kind, ask.From, ask.To = state.AskBackfill, now.Add(-8*time.Second), now.Add(-4*time.Second)
	}
	made, err := sp.store.Submit(ctx, ask)
	if err == nil && (made.Kind == state.AskTrigger || made.Kind == state.AskRetry) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked[sp.name] = append(b.asked[sp.name], checker.Ask{Job: job, Run: made.ID})
	}
}
