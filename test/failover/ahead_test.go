package failover

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// A leader that has claimed a burst ahead is killed before it is due: each run is done once, by its successor.
func TestALeaderKilledBetweenAClaimAheadAndItsSecond(t *testing.T) {
	t.Parallel()
	const n = 100
	due := time.Now().UTC().Truncate(time.Second).Add(15 * time.Second)
	var file strings.Builder
	file.WriteString("defaults: {lock_ttl: 5s, grace: 1s}\njobs:\n")
	for i := range n {
		fmt.Fprintf(&file, "  due%d: {schedule: \"@at %s\", shell: 'echo \"$ETCDCRON_JOB\" >> did'}\n", i, due.Format(time.RFC3339))
	}
	for i := range 40 { // a burst each second, so that the pace is measured, with a slow network
		fmt.Fprintf(&file, "  warm%d: {schedule: \"* * * * * *\", end: %s, command: [\"true\"]}\n", i, due.Add(-3*time.Second).Format(time.RFC3339))
	}
	b := newBench(t, file.String())
	proxy := etcdtest.NewProxy(t, b.cluster.Endpoints()[0])
	victim := b.serveAt(proxy.Endpoint(), "victim")
	_, info := b.leader(0)
	b.waitSucceeded("warm0", 1)
	proxy.Delay(250 * time.Millisecond)
	claimed := func(i int) *state.Run {
		r, _, err := b.store.Run(t.Context(), fmt.Sprintf("due%d", i), state.RunID(due))
		if err != nil {
			return nil
		}
		return &r
	}
	b.eventually("nothing is claimed", func() bool { return claimed(0) != nil })
	victim.signal(syscall.SIGKILL)
	<-victim.done
	killed := time.Now()
	t.Logf("killed %s before the second", due.Sub(killed).Round(time.Millisecond))
	if killed.After(due) {
		t.Skip("the machine is too slow to see it")
	}
	require.Empty(t, b.lines("did"))

	b.serve("successor")
	b.leader(info.Term)
	ahead := 0
	for i := range n {
		b.eventually("a run does not end", func() bool { r := claimed(i); return r != nil && r.Status.Final() })
		r := claimed(i)
		require.Equal(t, state.Succeeded, r.Status, r.Error)
		ahead += r.Attempt - 1
	}
	b.stopAll()
	did := map[string]int{}
	for _, job := range b.lines("did") {
		did[job]++
	}
	require.Len(t, did, n)
	for job, times := range did {
		require.Equal(t, 1, times, job)
	}
	require.Positive(t, ahead)
	t.Logf("%d of %d were claimed ahead and resumed", ahead, n)
	b.requireNothingLeft()
}
