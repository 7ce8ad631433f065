package cronrunner

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever counts what is told knows all names that there can be.
func TestRetriesOfEtcdAreTold(t *testing.T) {
	b := newBench(t)
	i := b.start(Config{}, secondly("tick", quick))
	i.waitFor(func(ev Event) bool { _, ok := ev.(Recorded); return ok })
	require.NoError(t, b.cluster.Stop())
	for _, operation := range []string{"lease", "commit"} {
		i.waitFor(func(ev Event) bool {
			again, ok := ev.(Retrying)
			return ok && again.Operation == operation && again.Err != nil
		})
	}
	require.NoError(t, b.cluster.Restart())
	n := len(b.runs("tick"))
	require.Eventually(t, func() bool { return len(b.runs("tick")) > n }, patience, 20*time.Millisecond)
	i.stop()
	require.False(t, i.events.has(func(ev Event) bool {
		again, ok := ev.(Retrying)
		return ok && !slices.Contains(RetryOperations(), again.Operation)
	}))
}
