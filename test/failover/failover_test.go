package failover

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

const leaderTTL = 5 * time.Second

// secondly appends its scheduled time to a file each second. A run that is cut off fails and is not
// resumed: the line may have been written already.
const secondly = `
jobs:
  secondly:
    schedule: "* * * * * *"
    shell: echo "$ETCDCRON_SCHEDULED_AT" >> secondly
    lock_ttl: 5s
    recovery: fail
`

func TestKillingTheLeaderLosesAndRepeatsNothing(t *testing.T) {
	b := newBench(t, secondly)
	for i := range 6 {
		b.serve(fmt.Sprintf("i%d", i))
	}
	var term int64
	for range 3 {
		p, info := b.leader(term)
		term = info.Term
		b.waitSucceeded("secondly", 3)
		killed := time.Now()
		p.signal(syscall.SIGKILL)
		<-p.done
		_, next := b.leader(term)
		b.waitSucceeded("secondly", 2)
		gap := firstOf(t, b.history("secondly"), next.Term).StartedAt.Sub(killed)
		t.Logf("kill -9 of %s: the next leader was elected after %s, its first run started after %s",
			p.id, next.ElectedAt.Sub(killed).Round(time.Millisecond), gap.Round(time.Millisecond))
		require.Less(t, gap, 2*leaderTTL+5*time.Second, "far beyond TTL + 1 s, also for a busy machine")
	}
	b.stopAll()
	b.requireEachSecondOnce("secondly", b.lines("secondly"))

	caughtUp := map[int64]int{}
	for _, r := range b.history("secondly") {
		if r.Trigger == state.ByCatchUp && r.Attempt > 0 {
			caughtUp[r.Term]++
		}
	}
	for term, n := range caughtUp {
		require.LessOrEqual(t, n, 1, "catch-up `latest` runs once, in term %d", term)
	}
	require.NotEmpty(t, caughtUp)
}

// firstOf is the first run that was executed in a term.
func firstOf(t *testing.T, runs []state.Run, term int64) state.Run {
	t.Helper()
	i := slices.IndexFunc(runs, func(r state.Run) bool { return r.Term == term && r.Attempt > 0 })
	require.GreaterOrEqual(t, i, 0)
	return runs[i]
}

func TestAGracefulStopHandsOverAtOnce(t *testing.T) {
	b := newBench(t, secondly)
	b.serve("i0")
	var took []time.Duration
	_, info := b.leader(0)
	for i := range 10 {
		b.serve(fmt.Sprintf("i%d", i+1))
		b.eventually("no second candidate", func() bool {
			resp, err := b.client.Get(t.Context(), b.keys.Candidates(), clientv3.WithPrefix(), clientv3.WithCountOnly())
			return err == nil && resp.Count == 2
		})
		p, _ := b.leader(info.Term - 1)
		b.waitSucceeded("secondly", 1)
		told := time.Now()
		p.signal(syscall.SIGTERM)
		_, info = b.leader(info.Term)
		took = append(took, info.ElectedAt.Sub(told))
		<-p.done
		require.NoError(t, p.err)
	}
	slices.Sort(took)
	t.Logf("from SIGTERM to the successor's election: median %s, all %v", took[5].Round(time.Millisecond), took)
	require.Less(t, took[5], leaderTTL, "it did not wait for the lease to end")
	b.stopAll()
	b.requireEachSecondOnce("secondly", b.lines("secondly"))
	b.requireNothingLeft()
}

// A leader that is frozen past its TTL and wakes up claims nothing as the old leader; its running
// command is told to stop; what it tries to record afterwards is refused.
func TestAFrozenLeaderIsHarmlessWhenItWakesUp(t *testing.T) {
	b := newBench(t, `
jobs:
  endless:
    schedule: "* * * * * *"
    shell: |
      trap 'echo "$ETCDCRON_ATTEMPT" >> told; exit 0' TERM
      echo "$ETCDCRON_ATTEMPT" >> endless
      while :; do sleep 0.05; done
    lock_ttl: 5s
  brief:
    schedule: "* * * * * *"
    shell: |
      if [ "$ETCDCRON_ATTEMPT" = 1 ] && [ ! -e brief ]; then
        echo "$$" >> brief-pid
        echo "$ETCDCRON_RUN_ID" >> brief
        while [ ! -e finish-brief ]; do sleep 0.05; done
      fi
    lock_ttl: 5s
`)
	old := b.serve("old")
	_, first := b.leader(0)
	b.eventually("the jobs do not start", func() bool { return len(b.lines("endless")) > 0 && len(b.lines("brief")) > 0 })
	b.serve("new")

	old.signal(syscall.SIGSTOP)
	_, second := b.leader(first.Term)
	b.eventually("its runs are not taken over", func() bool { return slices.Contains(b.lines("endless"), "2") })
	cutOff := b.lines("brief")[0]
	b.eventually("the brief run is not taken over", func() bool {
		r, _, err := b.store.Run(t.Context(), "brief", cutOff)
		return err == nil && r.Attempt == 2 && r.Status.Final()
	})
	b.touch("finish-brief") // done while its instance is frozen: it will have something to record
	pid := b.lines("brief-pid")[0]
	b.eventually("the brief command does not end", func() bool { return ended(t, pid) })
	before := b.history("brief")
	require.NotContains(t, b.lines("told"), "1")

	old.signal(syscall.SIGCONT)
	b.eventually("its command is not told to stop", func() bool { return slices.Contains(b.lines("told"), "1") })
	b.eventually("its record is not refused", func() bool {
		return strings.Contains(old.out.String(), state.ErrNotOwner.Error())
	})
	record, _, err := b.store.Run(t.Context(), "brief", cutOff)
	require.NoError(t, err)
	require.Equal(t, 2, record.Attempt)
	require.Contains(t, record.Instance, "new-")
	require.True(t, strings.HasPrefix(record.Attempts[0].Instance, "old-"))

	b.waitSucceeded("brief", 3)
	for _, r := range b.history("brief")[len(before):] {
		require.Equal(t, second.Term, r.Term, "claimed by the old leader: %s", r.ID)
	}
}

func (b *bench) touch(name string) {
	b.t.Helper()
	b.write(name, "")
}

func TestEtcdGoneForFifteenSeconds(t *testing.T) {
	b := newBench(t, secondly)
	for i := range 3 {
		b.serve(fmt.Sprintf("i%d", i))
	}
	b.leader(0)
	b.waitSucceeded("secondly", 3)
	require.NoError(t, b.cluster.Stop())
	const outage = 15 * time.Second
	<-time.After(outage)
	require.NoError(t, b.cluster.Restart())
	back := time.Now()
	b.waitSucceeded("secondly", 3)
	_, info := b.leader(0)
	t.Logf("%s leads, three more runs %s after etcd was back", info.Instance, time.Since(back).Round(time.Millisecond))
	for _, p := range b.procs {
		require.True(t, p.alive(), "%s has exited", p.id)
	}
	b.stopAll()
	b.requireEachSecondOnce("secondly", b.lines("secondly"))
	b.requireNothingLeft()
}

// A lock's lease revoked from outside: the run is told at once, and nothing of its command is left.
func TestARevokedLockEndsTheWholeCommand(t *testing.T) {
	b := newBench(t, `
jobs:
  family:
    schedule: "* * * * * *"
    shell: |
      echo $$ >> pids
      sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 0.1; done' &
      echo $! >> pids
      wait
    lock_ttl: 30s
    grace: 1s
    recovery: fail
`)
	b.serve("i0")
	b.eventually("the command does not start", func() bool { return len(b.lines("pids")) >= 3 })
	pids := b.lines("pids")[:3]
	lock, err := b.client.Get(t.Context(), b.keys.Lock("family"))
	require.NoError(t, err)
	require.Len(t, lock.Kvs, 1)
	revoked := time.Now()
	_, err = b.client.Revoke(t.Context(), clientv3.LeaseID(lock.Kvs[0].Lease))
	require.NoError(t, err)
	for _, pid := range pids {
		b.eventually("process "+pid+" is left", func() bool { return ended(t, pid) })
	}
	t.Logf("all gone %s after the revocation, with a grace of 1s", time.Since(revoked).Round(time.Millisecond))
	b.eventually("the run has no end", func() bool {
		runs := b.history("family")
		return len(runs) > 0 && runs[0].Status == state.Failed && runs[0].Reason == state.ReasonInstanceLost
	})
}
