package cronrunner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/etcdcron/etcdcron/state"
)

func TestRetryPauseIsCappedAndJittered(t *testing.T) {
	r := Retry{MaxAttempts: 10, Initial: time.Second, Max: time.Minute, Multiplier: 3}
	for n, want := range map[int]time.Duration{1: time.Second, 2: 3 * time.Second, 3: 9 * time.Second, 4: 27 * time.Second, 5: time.Minute, 1000: time.Minute} {
		require.Equal(t, want, r.pause(n, 1), "retry %d", n)
		require.Zero(t, r.pause(n, 0))
		require.Equal(t, want/2, r.pause(n, 0.5))
	}
	rapid.Check(t, func(t *rapid.T) {
		r := Retry{
			MaxAttempts: rapid.IntRange(2, MaxRetryAttempts).Draw(t, "attempts"),
			Initial:     time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, "initial")),
			Multiplier:  rapid.Float64Range(1, 100).Draw(t, "multiplier"),
		}
		r.Max = max(r.Initial, time.Duration(rapid.Int64Range(0, int64(MaxRetryPause)).Draw(t, "max")))
		r.check(func(field string, err error) { t.Fatalf("%s: %v", field, err) })
		p := r.pause(rapid.IntRange(1, 1000).Draw(t, "n"), rapid.Float64Range(0, 1).Draw(t, "chance"))
		require.True(t, 0 <= p && p <= r.Max, p)
	})
}

func TestWhetherAnAttemptIsFollowedByAnother(t *testing.T) {
	j := mustCompile(t, Job{Schedule: "@daily", Retry: Retry{MaxAttempts: 3}})
	once := mustCompile(t, Job{Schedule: "@daily"})
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		j     *job
		run   state.Run
		err   error
		pause time.Duration
		again bool
	}{
		"no retry":                         {once, state.Run{Attempt: 1}, boom, 0, false},
		"the first":                        {j, state.Run{Attempt: 1}, boom, DefaultRetryInitial, true},
		"the second":                       {j, state.Run{Attempt: 2, Retries: 1}, boom, 2 * DefaultRetryInitial, true},
		"the last":                         {j, state.Run{Attempt: 3, Retries: 2}, boom, 0, false},
		"lost instances do not count":      {j, state.Run{Attempt: 7, Recoveries: 6}, boom, DefaultRetryInitial, true},
		"permanent":                        {j, state.Run{Attempt: 1}, fmt.Errorf("bad: %w", Permanent(boom)), 0, false},
		"the handler's own pause":          {j, state.Run{Attempt: 1}, fmt.Errorf("busy: %w", RetryAfter(boom, time.Hour)), time.Hour, true},
		"which is bounded":                 {j, state.Run{Attempt: 1}, RetryAfter(boom, 1000*time.Hour), MaxRetryPause, true},
		"and not more often":               {j, state.Run{Attempt: 3, Retries: 2}, RetryAfter(boom, time.Hour), 0, false},
		"permanent counts before a pause":  {j, state.Run{Attempt: 1}, RetryAfter(Permanent(boom), time.Hour), 0, false},
		"a pause of nothing marks nothing": {j, state.Run{Attempt: 1}, RetryAfter(boom, 0), DefaultRetryInitial, true},
	} {
		t.Run(name, func(t *testing.T) {
			res := resultOf(tc.err)
			pause, again := tc.j.retry(&tc.run, &res, 1)
			require.Equal(t, tc.again, again)
			require.Equal(t, tc.pause, pause)
			require.ErrorIs(t, tc.err, boom, "the marks hide nothing")
		})
	}
	require.NoError(t, Permanent(nil))
	require.NoError(t, RetryAfter(nil, time.Hour))
}

func TestBadRetriesAreRefused(t *testing.T) {
	for _, tc := range []struct {
		job  Job
		want string
	}{
		{Job{Retry: Retry{MaxAttempts: -1}}, "retry.max_attempts: -1 is not between 1 (no retry) and 1000"},
		{Job{Retry: Retry{MaxAttempts: 1001}}, "retry.max_attempts"},
		{Job{Retry: Retry{Initial: time.Second}}, "retry.max_attempts: with 1 attempt there is no retry"},
		{Job{Retry: Retry{MaxAttempts: 2, Initial: -1}}, "retry.initial"},
		{Job{Retry: Retry{MaxAttempts: 2, Initial: time.Minute, Max: time.Second}}, "retry.max: 1s is less than the initial pause, 1m0s"},
		{Job{Retry: Retry{MaxAttempts: 2, Max: 25 * time.Hour}}, "retry.max"},
		{Job{Retry: Retry{MaxAttempts: 2, Multiplier: 0.5}}, "retry.multiplier: 0.5 is not between 1 and 100"},
		{Job{Checkpoint: "ever"}, `checkpoint: "ever" is not a scope`},
		{Job{Checkpoint: state.PerJob, Overlap: Overlap{Policy: Allow}}, `checkpoint: "job" contradicts overlap "allow"`},
	} {
		tc.job.Name, tc.job.Schedule = "j", "@daily"
		require.ErrorContains(t, tc.job.Check(), tc.want)
	}
}

// faulty is a job whose attempts fail until they are told otherwise.
type faulty struct {
	Job

	mu     sync.Mutex
	err    error
	tokens []int64
	tried  []int
}

func newFaulty(retry Retry) *faulty {
	f := &faulty{err: errors.New("boom")}
	f.Job = Job{Name: "faulty", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Retry: retry, Handler: func(_ context.Context, run *Run) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.tokens = append(f.tokens, run.FencingToken())
		f.tried = append(f.tried, run.Attempt())
		run.SetOutput(fmt.Sprintf("attempt %d", run.Attempt()))
		return f.err
	}}
	return f
}

func (f *faulty) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *faulty) attempts() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]int{}, f.tried...)
}

func TestARunIsTriedAgainUntilItsAttemptsAreSpent(t *testing.T) {
	b := newBench(t)
	f := newFaulty(Retry{MaxAttempts: 4, Initial: 50 * time.Millisecond, Max: 50 * time.Millisecond})
	i := b.start(Config{}, f.Job)
	require.Eventually(t, func() bool { return b.defined("faulty") }, patience, 5*time.Millisecond)
	r := b.waitOver("faulty", b.acted(b.submit(state.Request{Kind: state.AskTrigger, Job: "faulty"})).ID)
	require.Equal(t, state.Failed, r.Status)
	require.Equal(t, 4, r.Attempt)
	require.Equal(t, 3, r.Retries)
	require.Equal(t, "boom", r.Error)
	require.Equal(t, "attempt 4", r.Output, "of the last")
	require.Len(t, r.Attempts, 3)
	for n, a := range r.Attempts {
		require.Equal(t, n+1, a.Attempt)
		require.Equal(t, state.ReasonFailed, a.Reason)
		require.Equal(t, "boom", a.Error)
		require.Equal(t, f.tokens[n], a.FencingToken)
	}
	require.IsIncreasing(t, f.tokens, "each attempt has a greater token")
	require.Equal(t, []int{1, 2, 3, 4}, f.attempts())
	st := b.status("faulty")
	require.Equal(t, int64(3), st.RetriedTotal)
	require.Equal(t, int64(1), st.FailedTotal)
	require.True(t, i.events.has(func(ev Event) bool { e, ok := ev.(Retried); return ok && e.Run.Retries == 3 }))

	f.set(Permanent(errors.New("no such account")))
	r = b.waitOver("faulty", b.acted(b.submit(state.Request{Kind: state.AskTrigger, Job: "faulty"})).ID)
	require.Equal(t, 1, r.Attempt, "permanent")
	i.stop()
	b.requireNothingLeft("faulty")
}

// waitRetrying waits until the first attempt of a run has failed and it waits for its next.
func (b *bench) waitRetrying(job string) state.Run {
	b.t.Helper()
	r := b.acted(b.submit(state.Request{Kind: state.AskTrigger, Job: job}))
	return b.waitRun(job, r.ID, func(r state.Run) bool { return !r.RetryAt.IsZero() })
}

// The attempt count and the time of the next attempt are in the record: whoever takes the run over between two
// attempts keeps to both, and no attempt counts as lost.
func TestARetrySurvivesTheLossOfItsInstance(t *testing.T) {
	b := newBench(t)
	f := newFaulty(Retry{MaxAttempts: 3})
	f.err = RetryAfter(f.err, 5*time.Second)
	f.Recovery.Policy = Fail // nothing was cut off, so it does not matter
	a := b.start(Config{InstanceID: "a"}, f.Job)
	require.Eventually(t, func() bool { return b.defined("faulty") }, patience, 5*time.Millisecond)
	waiting := b.waitRetrying("faulty")
	require.Equal(t, state.Running, waiting.Status)
	require.Equal(t, 1, waiting.Attempt)
	f.set(nil)
	d := b.start(Config{InstanceID: "d"}, f.Job)
	b.waitCandidates(2)
	a.stop() // it leaves the run as it is
	r := b.waitOver("faulty", waiting.ID)
	d.stop()
	require.Equal(t, state.Succeeded, r.Status)
	require.Equal(t, 2, r.Attempt)
	require.Equal(t, 1, r.Retries)
	require.Zero(t, r.Recoveries)
	require.Len(t, r.Attempts, 1)
	require.False(t, r.StartedAt.Before(waiting.RetryAt), "not before its time")
	require.Equal(t, []int{1, 2}, f.attempts())
	b.requireNothingLeft("faulty")
}

func TestARunThatWaitsForItsNextAttemptIsCanceledAndHoldsNoSlot(t *testing.T) {
	b := newBench(t)
	f := newFaulty(Retry{MaxAttempts: 3})
	f.err = RetryAfter(f.err, time.Hour)
	i := b.start(Config{MaxConcurrent: 1}, f.Job, secondly("tick", quick))
	b.waitRuns("tick", reached(1, state.Succeeded))
	waiting := b.waitRetrying("faulty")
	n := len(b.runs("tick"))
	b.waitRuns("tick", reached(n+2, state.Succeeded))
	b.submit(state.Request{Kind: state.AskCancel, Job: "faulty", Run: waiting.ID, By: "ann"})
	r := b.waitOver("faulty", waiting.ID)
	i.stop()
	require.Equal(t, state.Canceled, r.Status)
	require.Equal(t, state.ReasonRequested, r.Reason)
	require.Zero(t, r.RetryAt)
	b.requireNothingLeft("faulty")
}
