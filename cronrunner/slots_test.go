package cronrunner

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

// A run that is tried again and again gives its slot to who has waited longer.
func TestRetriesTakeTurnsWithWhatWaitsForASlot(t *testing.T) {
	b := newBench(t)
	busy := Job{
		Name: "busy", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second,
		Retry: Retry{MaxAttempts: 1000, Initial: time.Millisecond, Max: time.Millisecond},
		Handler: func(ctx context.Context, _ *Run) error {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			return errors.New("boom")
		},
	}
	i := b.start(Config{MaxConcurrent: 1, DrainTimeout: -1}, busy, secondly("tick", quick))
	b.waitRuns("tick", reached(1, state.Succeeded))
	asked := b.acted(b.submit(state.Request{Kind: state.AskTrigger, Job: "busy"}))
	n := count(b.runs("tick"), state.Succeeded)
	b.waitRuns("tick", reached(n+3, state.Succeeded))
	b.waitRun("busy", asked.ID, func(r state.Run) bool { return r.Attempt > 3 })
	i.stop()
}

// What is asked of a job is done though the job waits for a slot.
func TestAJobThatWaitsForASlotIsSteeredAllTheSame(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, Overlap{Policy: Queue})
	block := make(chan struct{})
	other := Job{Name: "other", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Handler: func(ctx context.Context, _ *Run) error {
		select {
		case <-block:
		case <-ctx.Done():
		}
		return nil
	}}
	i := b.start(Config{MaxConcurrent: 1, DrainTimeout: -1}, h.Job, other)
	running := h.trigger()
	waiting := h.trigger()
	require.Equal(t, state.Pending, waiting.Status)
	require.Eventually(t, func() bool { return b.defined("other") }, patience, 5*time.Millisecond)
	o := b.submit(state.Request{Kind: state.AskTrigger, Job: "other"}) // it is next in the line for the slot
	b.passed(300 * time.Millisecond)
	close(h.release)
	b.acted(o)
	b.waitOver("held", running.ID)
	b.submit(state.Request{Kind: state.AskCancel, Job: "held", Run: waiting.ID, By: "ann"})
	require.Equal(t, state.Canceled, b.waitOver("held", waiting.ID).Status, "while the slot is taken")
	close(block)
	i.stop()
	b.requireNothingLeft("held")
}

// Slots are given back whatever becomes of the runs: of those that were canceled while they waited, refused, and
// tried again, none is left over.
func TestSlotsAreGivenBack(t *testing.T) {
	b := newBench(t)
	f := newFaulty(Retry{MaxAttempts: 3, Initial: time.Millisecond, Max: time.Millisecond})
	i := b.start(Config{MaxConcurrent: 3}, f.Job, secondly("tick", quick), secondly("tock", quick))
	b.waitRuns("tick", reached(1, state.Succeeded))
	b.waitOver("faulty", b.acted(b.submit(state.Request{Kind: state.AskTrigger, Job: "faulty"})).ID)
	f.set(RetryAfter(errors.New("boom"), time.Hour))
	waiting := b.waitRetrying("faulty")
	b.submit(state.Request{Kind: state.AskCancel, Job: "faulty", Run: waiting.ID})
	b.waitOver("faulty", waiting.ID)
	left := b.waitRetrying("faulty") // it is left to whoever comes next
	i.stop()
	require.Zero(t, i.attempts.slots)
	require.Empty(t, i.attempts.line)
	f.set(nil)
	next := b.start(Config{MaxConcurrent: 1}, f.Job)
	b.submit(state.Request{Kind: state.AskCancel, Job: "faulty", Run: left.ID})
	require.Equal(t, state.Canceled, b.waitOver("faulty", left.ID).Status)
	next.stop()
	require.Zero(t, next.attempts.slots)
}

func TestTheLineForSlotsIsInOrder(t *testing.T) {
	as := &attempts{s: &Scheduler{cfg: Config{MaxConcurrent: 1}}}
	first := as.queueUp()
	require.True(t, isClosed(first.granted))
	second, third := as.queueUp(), as.queueUp()
	require.False(t, as.reserve())
	as.release()
	require.True(t, isClosed(second.granted))
	require.False(t, isClosed(third.granted))
	require.False(t, as.reserve(), "it went to who waits")
	as.withdraw(third)
	as.withdraw(second) // it had one
	require.True(t, as.reserve())
	as.release()
	require.Zero(t, as.slots)
}

// After Run's context has ended no attempt begins, however short the pause before it was.
func TestNoAttemptBeginsDuringTheDrain(t *testing.T) {
	for range 5 {
		b := newBenchInLine(t)
		var stopping atomic.Bool
		var late atomic.Int64
		called := make(chan struct{}, 100)
		goOn := make(chan struct{})
		j := Job{
			Name: "faulty", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Retry: Retry{MaxAttempts: 3, Initial: time.Millisecond, Max: time.Millisecond},
			Handler: func(context.Context, *Run) error {
				if stopping.Load() {
					late.Add(1)
				}
				called <- struct{}{}
				<-goOn
				return errors.New("boom")
			},
		}
		i := b.start(Config{}, j)
		require.Eventually(t, func() bool { return b.defined("faulty") }, patience, 5*time.Millisecond)
		r := b.submit(state.Request{Kind: state.AskTrigger, Job: "faulty"})
		<-called
		done := make(chan struct{})
		go func() { i.stop(); close(done) }()
		require.Eventually(t, func() bool { return isClosed(i.attempts.stopped) }, patience, time.Millisecond)
		stopping.Store(true)
		close(goOn)
		<-done
		require.Zero(t, late.Load())
		run, _, err := b.store.Run(t.Context(), "faulty", r.ID)
		require.NoError(t, err)
		require.Equal(t, state.Running, run.Status, "whoever comes next goes on with it")
		require.False(t, run.RetryAt.IsZero())
	}
}
