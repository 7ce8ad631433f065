package failover

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

// Runs that wait are in etcd: killing the leader in the middle loses, repeats and reorders none, and no two
// are ever at work at once.
func TestKillingTheLeaderLeavesTheQueueAsItIs(t *testing.T) {
	const job = `
  %s:
    schedule: "* * * * * *"
    shell: |
      echo "start-$ETCDCRON_RUN_ID" >> %[1]s
      sleep 1.3
      echo "end-$ETCDCRON_RUN_ID" >> %[1]s
    overlap: %[2]s
    lock_ttl: 5s
    recovery: fail
`
	b := newBench(t, "jobs:"+fmt.Sprintf(job, "queued", "{policy: queue, limit: 1000}")+fmt.Sprintf(job, "merged", "coalesce"))
	for i := range 4 {
		b.serve(fmt.Sprintf("i%d", i))
	}
	var term int64
	for range 2 {
		p, info := b.leader(term)
		term = info.Term
		b.waitSucceeded("queued", 2)
		b.waitSucceeded("merged", 2)
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	b.leader(term)
	b.waitSucceeded("queued", 3)
	b.waitSucceeded("merged", 3)
	b.stopAll()

	for _, name := range []string{"queued", "merged"} {
		cutOff := b.requireOneAtATimeInOrder(name)
		failed := 0
		for _, r := range b.history(name) {
			switch r.Status {
			case state.Succeeded, state.Missed, state.Pending:
			case state.Failed:
				require.Equal(t, state.ReasonInstanceLost, r.Reason)
				failed++
			default:
				require.Fail(t, "unexpected", "run %s is %s: %s", r.ID, r.Status, r.Reason)
			}
		}
		t.Logf("%s: %d records, %d cut off by a kill", name, len(b.history(name)), failed)
		require.LessOrEqual(t, cutOff, failed)
	}
}

// requireOneAtATimeInOrder checks what a job wrote: starts are in the order of the run ids, none is there
// twice, and a run has ended before the next one starts, unless it was cut off. It returns how many were.
func (b *bench) requireOneAtATimeInOrder(name string) (cutOff int) {
	b.t.Helper()
	var starts []string
	for _, line := range b.lines(name) {
		what, id, _ := strings.Cut(line, "-")
		if what == "start" {
			starts = append(starts, id)
			continue
		}
		require.Equal(b.t, starts[len(starts)-1], id, "%s: two runs at once", name)
	}
	require.True(b.t, slices.IsSorted(starts), "%s: %v", name, starts)
	require.Len(b.t, slices.Compact(slices.Clone(starts)), len(starts), "%s: a run was done twice", name)
	return len(starts) - strings.Count(strings.Join(b.lines(name), " "), "end-")
}
