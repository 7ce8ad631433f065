package failover

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

// Each policy for a job that is slower than its period does what it says, whoever leads: killing the leader in
// the middle loses, repeats and reorders nothing, and no two runs are ever at work at once.
func TestKillingTheLeaderChangesNoOverlapPolicy(t *testing.T) {
	const job = `
  %s:
    schedule: "* * * * * *"
    end: %s
    shell: |
      echo "start-$ETCDCRON_RUN_ID" >> %[1]s
      sleep 1.3
      echo "end-$ETCDCRON_RUN_ID" >> %[1]s
    overlap: %[3]s
    lock_ttl: 5s
    recovery: fail
`
	end := time.Now().UTC().Truncate(time.Second).Add(25 * time.Second)
	file := "jobs:"
	policies := []string{"skip", "queue", "coalesce", "replace"}
	for _, policy := range policies {
		written := policy
		if policy == "queue" {
			written = "{policy: queue, limit: 1000}"
		}
		file += fmt.Sprintf(job, policy, end.Format(time.RFC3339), written)
	}
	b := newBench(t, file)
	for i := range 4 {
		b.serve(fmt.Sprintf("i%d", i))
	}
	var term int64
	for range 2 {
		p, info := b.leader(term)
		term = info.Term
		for _, policy := range policies[:3] {
			b.waitSucceeded(policy, 2)
		}
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	for _, policy := range policies {
		b.eventually(policy+" does not come to its end", func() bool {
			def, err := b.store.Job(t.Context(), policy)
			st := def.View.Status
			return err == nil && st.Cursor.Equal(end) && st.Running+st.Pending == 0
		})
	}
	b.stopAll()

	for _, policy := range policies {
		runs := b.history(policy)
		ended := b.requireTimesInOneRecordEach(policy, runs, end)
		cutOff := b.requireOneAtATimeInOrder(policy)
		t.Logf("%s: %d records: %v", policy, len(runs), ended)
		require.LessOrEqual(t, cutOff, ended["failed instance_lost"]+ended["canceled replaced"])
		require.LessOrEqual(t, ended["failed instance_lost"], 2, "one a kill")
		last := runs[len(runs)-1]
		switch policy {
		case "skip":
			require.Positive(t, ended["skipped overlap"])
			require.Zero(t, ended["canceled replaced"])
		case "queue":
			require.Zero(t, ended["skipped overlap"]+ended["skipped queue_full"])
		case "coalesce":
			require.Less(t, ended["succeeded "], 25, "fewer completions than scheduled times")
		case "replace":
			require.Positive(t, ended["canceled replaced"])
			require.Equal(t, state.Succeeded, last.Status, "it ends with the newest")
			require.Equal(t, end, last.ScheduledAt)
		}
	}
}

// requireTimesInOneRecordEach checks that each second up to the last is in exactly one record, which is final,
// and counts how they ended.
func (b *bench) requireTimesInOneRecordEach(job string, runs []state.Run, last time.Time) (ended map[string]int) {
	b.t.Helper()
	require.NotEmpty(b.t, runs)
	ended = map[string]int{}
	next := runs[0].ScheduledAt
	for _, r := range runs {
		require.Equal(b.t, next, r.ScheduledAt, "%s: scheduled times between records, or twice", job)
		require.True(b.t, r.Status.Final(), "%s: run %s is %s", job, r.ID, r.Status)
		next = r.Covers().Add(time.Second)
		ended[string(r.Status)+" "+r.Reason]++
	}
	require.Equal(b.t, last, next.Add(-time.Second))
	return ended
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
