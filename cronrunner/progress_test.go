package cronrunner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

type position struct{ Account int }

// onTrigger runs a handler once, at a job that is due far away, and returns the run's record.
func (b *bench) onTrigger(j Job) state.Run {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.defined(j.Name) }, patience, 5*time.Millisecond)
	return b.acted(b.submit(state.Request{Kind: state.AskTrigger, Job: j.Name}))
}

// keysUnder lists what a job has beside its spec and its runs.
func (b *bench) notesOf(job string) (keys []string) {
	b.t.Helper()
	resp, err := b.client.Get(b.t.Context(), b.store.Keys().Root()+"jobs/"+job+"/", prefix, keysOnly)
	require.NoError(b.t, err)
	for _, kv := range resp.Kvs {
		key := strings.TrimPrefix(string(kv.Key), b.store.Keys().Root()+"jobs/"+job+"/")
		if key != "spec" && !strings.HasPrefix(key, "runs/") {
			keys = append(keys, key)
		}
	}
	return keys
}

// An attempt goes on from the last checkpoint that was acknowledged to an earlier one (invariant I5).
func TestALaterAttemptGoesOnFromTheLastCheckpoint(t *testing.T) {
	b := newBench(t)
	found, lost := make(chan int, 10), make(chan error, 10)
	var stale *Run
	j := Job{Name: "billing", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Handler: func(ctx context.Context, run *Run) error {
		var p position
		ok, err := run.Restore(ctx, &p)
		if err != nil {
			return err
		}
		if ok {
			found <- p.Account
			return nil
		}
		for n := 1; n <= 7; n++ {
			if err := run.Checkpoint(ctx, position{n}); err != nil {
				return err
			}
		}
		if ok, err := run.Restore(ctx, &p); err != nil || !ok || p.Account != 7 {
			return errors.New("its own is not read back")
		}
		stale = run
		found <- 0
		<-ctx.Done()
		lost <- context.Cause(ctx)
		return ctx.Err()
	}}
	b.start(Config{}, j)
	r := b.onTrigger(j)
	require.Zero(t, <-found)
	require.Equal(t, []string{"checkpoints/" + r.ID}, b.notesOf("billing"))
	revokeLocks(t, b)
	require.ErrorIs(t, <-lost, ErrLockLost)
	require.Equal(t, 7, <-found)
	r = b.waitOver("billing", r.ID)
	require.Equal(t, state.Succeeded, r.Status)
	require.Equal(t, 2, r.Attempt)
	require.Equal(t, 1, r.Recoveries)
	require.Empty(t, b.notesOf("billing"), "nothing is left behind")
	require.ErrorIs(t, stale.Checkpoint(t.Context(), position{1}), ErrNotOwner, "an attempt that was taken over cannot write a word")
	require.Empty(t, b.notesOf("billing"))
}

// With the job's scope a checkpoint is carried on from a run that failed to the next, until one succeeds.
func TestACheckpointOfTheJobIsCarriedOn(t *testing.T) {
	b := newBench(t)
	found := make(chan int, 10)
	outcomes := make(chan error, 10)
	j := Job{Name: "billing", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Checkpoint: state.PerJob, Handler: func(ctx context.Context, run *Run) error {
		p := position{}
		if _, err := run.Restore(ctx, &p); err != nil {
			return err
		}
		found <- p.Account
		if err := run.Checkpoint(ctx, position{p.Account + 10}); err != nil {
			return err
		}
		return <-outcomes
	}}
	i := b.start(Config{}, j)
	for n, tc := range []struct {
		outcome error
		begins  int
		left    []string
	}{
		{errors.New("the bank is closed"), 0, []string{"checkpoint"}},
		{errors.New("still closed"), 10, []string{"checkpoint"}},
		{nil, 20, nil},
		{nil, 0, nil},
	} {
		outcomes <- tc.outcome
		r := b.onTrigger(j)
		require.Equal(t, tc.begins, <-found, "run %d", n)
		b.waitOver("billing", r.ID)
		require.Equal(t, tc.left, b.notesOf("billing"))
	}
	i.stop()
}

func TestCheckpointsHaveABound(t *testing.T) {
	b := newBench(t)
	errs := make(chan error, 10)
	j := Job{Name: "billing", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Handler: func(ctx context.Context, run *Run) error {
		errs <- run.Checkpoint(ctx, strings.Repeat("x", state.MaxCheckpoint))
		errs <- run.Checkpoint(ctx, strings.Repeat("x", state.MaxCheckpoint-2))
		errs <- run.Checkpoint(ctx, make(chan int))
		var n int
		_, err := run.Restore(ctx, &n)
		errs <- err
		return nil
	}}
	i := b.start(Config{}, j)
	r := b.onTrigger(j)
	require.ErrorIs(t, <-errs, ErrCheckpointTooLarge)
	require.NoError(t, <-errs)
	require.ErrorContains(t, <-errs, "checkpoint: json: unsupported type")
	require.ErrorContains(t, <-errs, "restore: the checkpoint is of another form")
	b.waitOver("billing", r.ID)
	i.stop()
	require.Empty(t, b.notesOf("billing"))
}

// Progress does not wait, is written at most once a second, and its last is always written.
func TestProgressIsCoalescedAndItsLastIsWritten(t *testing.T) {
	b := newBench(t)
	release := make(chan struct{})
	j := Job{Name: "billing", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Handler: func(_ context.Context, run *Run) error {
		for n := range int64(100_000) {
			run.Progress(n, 100_000, "charging")
		}
		<-release
		run.Progress(100_000, 100_000, strings.Repeat("m", 2*state.MaxMessage))
		return nil
	}}
	i := b.start(Config{}, j)
	before := b.revisionOf()
	r := b.onTrigger(j)
	require.Eventually(t, func() bool {
		p, err := b.store.ProgressOf(t.Context(), "billing", r.ID)
		return err == nil && p != nil && p.Done == 99_999
	}, patience, 10*time.Millisecond)
	require.Less(t, b.revisionOf()-before, int64(12))
	close(release)
	r = b.waitOver("billing", r.ID)
	require.Equal(t, int64(100_000), r.Progress.Done)
	require.LessOrEqual(t, len(r.Progress.Message), state.MaxMessage)
	require.Empty(t, b.notesOf("billing"))
	i.stop()
}
