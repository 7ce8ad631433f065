package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The seeds of CI have every kind of fault, in pairs and freely.
func TestPlan(t *testing.T) {
	t.Parallel()
	seen, manner := make(map[string]int), make(map[uint64]bool)
	for _, seed := range ciSeeds {
		steps := plan(seed, ciTime)
		require.Equal(t, steps, plan(seed, ciTime), "a plan follows from its seed")
		manner[seed%manners] = true
		for i, s := range steps {
			seen[s.Kind]++
			require.LessOrEqual(t, s.At+s.For, ciTime)
			require.True(t, i == 0 || s.At >= steps[i-1].At)
		}
		t.Logf("seed %d: %d faults", seed, len(steps))
	}
	require.Equal(t, map[uint64]bool{inPairs: true, freely: true}, manner)
	for _, k := range kinds {
		require.Positive(t, seen[k.kind], "no %s", k.kind)
	}
}

// In pairs, two are at the same time; alone, none are.
func TestManners(t *testing.T) {
	t.Parallel()
	atOnce := func(seed uint64) (n int) {
		steps := plan(seed, time.Minute)
		for i := 1; i < len(steps); i++ {
			if steps[i].At < steps[i-1].At+max(steps[i-1].For, time.Second) {
				n++
			}
		}
		return n
	}
	require.Zero(t, atOnce(3+alone))
	require.Positive(t, atOnce(3+inPairs))
	require.Positive(t, atOnce(3+freely))
}
