package failover

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

// A run waits for its next attempt when its instance is killed: whoever goes on with it keeps to the count of
// attempts and to the time of the next.
func TestALeaderKilledBetweenTwoAttempts(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
jobs:
  flaky:
    schedule: "0 0 1 1 *"
    shell: |
      echo "$ETCDCRON_ATTEMPT-$(date +%s)" >> tried
      exit 3
    retry: {max_attempts: 3, initial: 15s, max: 15s, multiplier: 1}
    recovery: fail
    lock_ttl: 3s
`)
	b.serve("a")
	b.serve("c")
	p, info := b.leader(0)
	b.eventually("the job is not there", func() bool { _, err := b.store.Job(t.Context(), "flaky"); return err == nil })
	var waiting state.Run
	var asked state.Request
	b.eventually("no pause is long enough to be killed in", func() bool { // pauses are random
		var err error
		if asked.ID == "" || waiting.Status.Final() {
			asked, err = b.store.Submit(t.Context(), state.Request{Kind: state.AskTrigger, Job: "flaky"})
			require.NoError(t, err)
			waiting = state.Run{}
		}
		if waiting, _, err = b.store.Run(t.Context(), "flaky", asked.ID); err != nil {
			return false
		}
		if left := time.Until(waiting.RetryAt); waiting.RetryAt.IsZero() || left > 6*time.Second && waiting.Attempt == 1 {
			return !waiting.RetryAt.IsZero()
		}
		_, _ = b.store.Submit(t.Context(), state.Request{Kind: state.AskCancel, Job: "flaky", Run: asked.ID})
		return false
	})
	p.signal(syscall.SIGKILL)
	<-p.done
	b.leader(info.Term)
	var end state.Run
	b.eventually("the run does not end", func() bool {
		var err error
		end, _, err = b.store.Run(t.Context(), "flaky", asked.ID)
		return err == nil && end.Status.Final()
	})
	b.stopAll()
	require.Equal(t, state.Failed, end.Status)
	require.Equal(t, 3, end.Attempt, "three attempts in all")
	require.Equal(t, 2, end.Retries)
	require.Zero(t, end.Recoveries, "no attempt was cut off")
	require.Len(t, end.Attempts, 2)
	require.False(t, end.Attempts[1].StartedAt.Before(waiting.RetryAt), "not before its time")
	require.Less(t, end.Attempts[1].StartedAt.Sub(waiting.RetryAt), 20*time.Second)
	require.Equal(t, 3, *end.ExitCode)
	b.requireNothingLeft()
}
