//go:build mutation

package chaos

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/test/chaos/checker"
	"github.com/etcdcron/etcdcron/test/chaos/workload"
)

// A harness that cannot fail proves nothing. Each deliberate fault in our own code is caught, where it matters; see
// state/mutation_off.go and cronrunner/mutation_off.go.
func TestEachMutationIsCaught(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		name  string
		rules string // one of which it breaks
		says  string
		set   settings
		does  func(*bed)
	}{
		{"term", "I1", "which was over", settings{lasts: 20 * second, burst: 20, jobs: workload.BurstOnly, ttl: 5 * second}, func(b *bed) { b.usurped(); b.usurped() }},
		{"trust", "I1", "began while", settings{lasts: 30 * second, jobs: workload.HeldToo}, (*bed).answeredLate},
		{"unlock", "I1 I2", "began while", settings{lasts: 30 * second}, func(b *bed) { b.silenced(); b.silenced() }},
		{"checkpoint", "I5", "had begun before it asked", settings{lasts: 30 * second}, func(b *bed) { b.silenced(); b.silenced() }},
		{"catch-up", "I3", "have no record", settings{lasts: 12 * second}, (*bed).killed},
		{"recovery", "I4", "live", settings{lasts: 12 * second}, (*bed).killed},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			m.set.mutation, m.set.code, m.set.patience = m.name, codeSeats, 15*second
			for try := 1; ; try++ { // what meets what is not in our hands
				r := provoke(t, m.set, m.does)
				i := slices.IndexFunc(r.Violations, func(v checker.Violation) bool {
					return strings.Contains(m.rules, v.Rule) && strings.Contains(v.Text, m.says)
				})
				if i >= 0 {
					t.Logf("caught, at the try %d: %s", try, r.Violations[i].Describe())
					return
				}
				require.Less(t, try, 3, "not caught; what was found: %v", r.Violations)
			}
		})
	}
}
