package failover

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

// etcd is away for longer than the locks last. A command that goes on is stopped before its lock could be
// gone, and when etcd is back exactly one attempt goes on. One that had finished meanwhile has the result that
// it had, since nobody has taken it over.
func TestEtcdAwayForLongerThanTheLock(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
jobs:
  long:
    schedule: "0 0 1 1 *"
    shell: |
      echo "start-$ETCDCRON_ATTEMPT-$(date +%s)" >> long
      trap 'echo "stopped-$ETCDCRON_ATTEMPT-$(date +%s)" >> long; exit 1' TERM
      while [ ! -e go ]; do sleep 0.1; done
      echo "end-$ETCDCRON_ATTEMPT" >> long
    lock_ttl: 10s
    grace: 2s
  brief:
    schedule: "0 0 1 1 *"
    shell: |
      echo "start-$ETCDCRON_ATTEMPT" >> brief
      while [ ! -e done ]; do sleep 0.1; done
      echo "end-$ETCDCRON_ATTEMPT" >> brief
      exit 7
    lock_ttl: 10s
    grace: 2s
`)
	b.serve("a")
	b.serve("c")
	b.leader(0)
	ids := map[string]string{}
	for _, job := range []string{"long", "brief"} {
		b.eventually("the jobs are not there", func() bool { _, err := b.store.Job(t.Context(), job); return err == nil })
		r, err := b.store.Submit(t.Context(), state.Request{Kind: state.AskTrigger, Job: job})
		require.NoError(t, err)
		ids[job] = r.ID
		b.eventually(job+" does not start", func() bool { return len(b.lines(job)) == 1 })
	}
	require.NoError(t, b.cluster.Stop())
	stopped := time.Now()
	b.touch("done")
	b.eventually("the brief one does not end", func() bool { return len(b.lines("brief")) == 2 })
	b.eventually("the long one is not stopped", func() bool { return len(b.lines("long")) == 2 })
	after := time.Since(stopped)
	require.Contains(t, b.lines("long")[1], "stopped-1-")
	require.Less(t, after, 10*time.Second, "before its lock could be gone")
	b.until(stopped.Add(14 * time.Second))
	require.NoError(t, b.cluster.Restart())

	b.eventually("no attempt goes on", func() bool { return len(b.lines("long")) == 3 })
	b.touch("go")
	record := map[string]state.Run{}
	for job, id := range ids {
		b.eventually(job+" does not end", func() bool {
			r, _, err := b.store.Run(t.Context(), job, id)
			record[job] = r
			return err == nil && r.Status.Final()
		})
	}
	b.stopAll()
	require.Equal(t, state.Succeeded, record["long"].Status)
	require.Equal(t, 2, record["long"].Attempt)
	require.Len(t, b.lines("long"), 4, "one attempt went on, and no other: %v", b.lines("long"))
	require.Equal(t, state.Failed, record["brief"].Status, "what it was")
	require.Equal(t, 7, *record["brief"].ExitCode)
	require.Equal(t, 1, record["brief"].Attempt)
	require.Len(t, b.lines("brief"), 2)
	t.Logf("stopped %s after etcd had gone, with a lock of 10s and a grace of 2s", after.Round(10*time.Millisecond))
	b.requireNothingLeft()
}

// until returns at an instant.
func (b *bench) until(at time.Time) {
	b.t.Helper()
	b.eventually("the time does not come", func() bool { return time.Now().After(at) })
}
