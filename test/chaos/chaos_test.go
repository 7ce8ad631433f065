package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/test/chaos/checker"
	"github.com/etcdcron/etcdcron/test/chaos/workload"
)

// ciSeeds are run each time. Between them they have every kind of fault, in pairs and freely: see TestPlan. Alone, and
// with aim, faults come in TestNarrowPlaces.
var ciSeeds = []uint64{1, 2}

const ciTime = 35 * second

// The fixed set of seeds. Nothing is asserted of how fast anything goes.
func TestChaos(t *testing.T) {
	t.Parallel()
	for _, seed := range ciSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := chaos(t, seed, settings{lasts: ciTime, burst: 40, code: codeSeats, file: fileSeats})
			requireNone(t, &r)
			require.Positive(t, r.Attempts)
		})
	}
}

// A soak: as long as is asked for.
func TestSoak(t *testing.T) {
	t.Parallel()
	if *soakTime == 0 {
		t.Skip("-chaos.duration says how long")
	}
	seed := *soakSeed
	for seed == 0 {
		seed = rand.Uint64()
	}
	r := chaos(t, seed, settings{lasts: *soakTime, burst: 300, code: codeSeats, file: fileSeats})
	if *soakFile != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(*soakFile, append(text, '\n'), 0o600))
	}
	requireNone(t, &r)
}

func requireNone(t *testing.T, r *Report) {
	t.Helper()
	if len(r.Violations) == 0 {
		return
	}
	for _, v := range r.Violations[:min(len(r.Violations), 20)] {
		t.Log(v)
	}
	require.FailNow(t, "the first violation", r.Violations[0].Describe())
}

// chaos is the faults of a seed, and what they have come to.
func chaos(t *testing.T, seed uint64, s settings) Report {
	t.Helper()
	t.Logf("-chaos.seed=%d", seed)
	b := newBed(t, s)
	b.begin()
	stop := b.pulse()
	ctx, enough := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() { b.ask(ctx, rand.New(rand.NewPCG(seed, 1))) })
	began := time.Now()
	b.carryOut(plan(seed, s.lasts))
	time.Sleep(time.Until(began.Add(s.lasts)))
	enough()
	asking.Wait()
	r := b.conclude(Report{Seed: seed, Seconds: s.lasts.Seconds()})
	stop()
	t.Log("\n" + r.String())
	return r
}

// conclude ends the faults, waits, stops all, and checks.
func (b *bed) conclude(r Report) Report {
	b.t.Helper()
	b.heal()
	r.lastFault = workload.Mono()
	b.settle()
	r.calm = workload.Mono()
	b.end()
	inputs := b.inputs()
	var all checker.Input
	all.Records = make(map[string][]checker.Record)
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		in := inputs[name]
		r.Violations = append(r.Violations, checker.Check(*in)...)
		all.Jobs, all.Asked = append(all.Jobs, in.Jobs...), append(all.Asked, in.Asked...)
		all.Events, all.Faults = append(all.Events, in.Events...), in.Faults
		maps.Copy(all.Records, in.Records)
	}
	return sum(r, &all)
}
